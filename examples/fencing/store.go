package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	_ "modernc.org/sqlite" // registers the driver "sqlite"
)

// errFenced is returned to a writer whose token is smaller than the token in the row, because another client has
// acquired the lock since.
var errFenced = errors.New("refused: a later holder of the lock has written")

// errNoToken is returned for a token that no lock has. A writer without a lock must not write, not even as the first.
var errNoToken = errors.New("refused: the token of a lock is positive")

// A store is the resource that the lock protects: a table that stores with each row the largest token with which the
// row was written.
type store struct{ db *sql.DB }

// openStore opens or creates the database in a file. Several processes may open the same file.
func openStore(ctx context.Context, path string) (*store, error) {
	db, err := sql.Open("sqlite", "file:"+path+"?_pragma=busy_timeout(5000)")
	if err != nil {
		return nil, err
	}
	const schema = `CREATE TABLE IF NOT EXISTS stock (
		item TEXT PRIMARY KEY, amount INTEGER NOT NULL, token INTEGER NOT NULL)`
	if _, err := db.ExecContext(ctx, schema); err != nil {
		return nil, errors.Join(fmt.Errorf("open %s: %w", path, err), db.Close())
	}
	return &store{db}, nil
}

func (s *store) close() error { return s.db.Close() }

// set writes an amount with the token of the lock. Fencing works because the comparison and the write are one atomic
// statement. An equal token is accepted, because the same holder writes again.
func (s *store) set(ctx context.Context, item string, amount, token int64) error {
	if token <= 0 {
		return fmt.Errorf("set %s to %d with token %d: %w", item, amount, token, errNoToken)
	}
	const write = `INSERT INTO stock (item, amount, token) VALUES (?1, ?2, ?3)
		ON CONFLICT (item) DO UPDATE SET amount = ?2, token = ?3 WHERE token <= ?3`
	done, err := s.db.ExecContext(ctx, write, item, amount, token)
	if err != nil {
		return fmt.Errorf("set %s: %w", item, err)
	}
	rows, err := done.RowsAffected()
	if err != nil {
		return fmt.Errorf("set %s: %w", item, err)
	}
	if rows == 0 {
		return fmt.Errorf("set %s to %d with token %d: %w", item, amount, token, errFenced)
	}
	return nil
}

// get returns an amount, and the token with which it was written.
func (s *store) get(ctx context.Context, item string) (amount, token int64, err error) {
	err = s.db.QueryRowContext(ctx, `SELECT amount, token FROM stock WHERE item = ?1`, item).Scan(&amount, &token)
	return amount, token, err
}
