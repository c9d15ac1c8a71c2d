// Command transfer moves money between two accounts of a table while it holds the locks of both.
//
//	transfer bank.db FROM TO AMOUNT redis://10.0.0.1:6379 ...
//
// Two transfers between the same accounts in opposite directions do not deadlock, because DoAll locks the names in a
// sorted order. The table stores the token of the last writer of each account, and refuses a transfer with a smaller
// token. So if a program is stopped until its locks have expired and other programs have written, the program moves
// nothing when it resumes.
package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strconv"

	_ "modernc.org/sqlite" // registers the driver

	"github.com/redlock-go/redlock/redlock"
)

func main() {
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt)
	defer cancel()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) < 5 {
		return errors.New("usage: transfer file.db from to amount masters")
	}
	amount, err := strconv.ParseInt(args[3], 10, 64)
	if err != nil || amount <= 0 {
		return fmt.Errorf("amount %q: must be an integer greater than 0", args[3])
	}
	db, err := open(ctx, args[0])
	if err != nil {
		return err
	}
	defer db.Close()
	locker, err := redlock.Open(args[4:])
	if err != nil {
		return err
	}
	defer locker.Close()
	return transfer(ctx, locker, db, args[1], args[2], amount)
}

// transfer moves amount from one account to another while it holds the locks of both.
func transfer(ctx context.Context, locker *redlock.Locker, db *sql.DB, from, to string, amount int64) error {
	names := []string{"account:" + from, "account:" + to}
	return locker.DoAll(ctx, names, func(ctx context.Context, locks *redlock.Locks) error {
		// ctx ends when either lock is lost.
		return move(ctx, db, from, to, amount, locks.Of(names[0]).Token(), locks.Of(names[1]).Token())
	})
}

// errFenced is returned if a later holder of an account's lock has written to the account.
var errFenced = errors.New("the token is smaller than that of the last writer")

// move writes both accounts, each with the token of its lock, or neither of them.
func move(ctx context.Context, db *sql.DB, from, to string, amount, fromToken, toToken int64) error {
	if from == to {
		return errors.New("both accounts are the same: give two accounts")
	}
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // no effect after Commit
	for _, w := range []struct {
		account    string
		add, token int64
	}{{from, -amount, fromToken}, {to, amount, toToken}} {
		done, err := tx.ExecContext(ctx,
			`UPDATE accounts SET balance = balance + ?, token = ? WHERE name = ? AND token <= ?`,
			w.add, w.token, w.account, w.token)
		if err != nil {
			return err
		}
		if n, err := done.RowsAffected(); err != nil || n == 0 {
			return errors.Join(err, fmt.Errorf("account %q: %w, or there is no such account", w.account, errFenced))
		}
	}
	return tx.Commit()
}

// open opens or creates the table of accounts. A transfer that would make a balance negative fails.
func open(ctx context.Context, path string) (*sql.DB, error) {
	db, err := sql.Open("sqlite", "file:"+path+"?_pragma=busy_timeout(10000)&_txlock=immediate")
	if err != nil {
		return nil, err
	}
	const table = `CREATE TABLE IF NOT EXISTS accounts (
		name TEXT PRIMARY KEY, balance INTEGER NOT NULL CHECK (balance >= 0), token INTEGER NOT NULL)`
	if _, err := db.ExecContext(ctx, table); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return db, nil
}
