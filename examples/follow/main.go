// Command follow competes with other clients to be the leader. A file lists the masters. When the file changes, the
// command changes to the new masters and keeps its lock. The format of the file is that of "redlock set": see
// docs/change.md.
//
//	echo '{"masters": ["redis://10.0.0.1", "redis://10.0.0.2", "redis://10.0.0.3"]}' >locks.json
//	go run ./examples/follow locks.json
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"os/signal"

	"github.com/redlock-go/redlock/redlock"
	"github.com/redlock-go/redlock/redlock/redlockfile"
)

func main() {
	log.SetFlags(0)
	if len(os.Args) != 2 {
		log.Fatal("usage: follow locks.json")
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1], os.Stdout); err != nil && ctx.Err() == nil {
		log.Fatal(err)
	}
}

// run campaigns, and applies changes of the file, until ctx ends.
func run(ctx context.Context, path string, out io.Writer) (err error) {
	locker, err := redlockfile.Open(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, locker.Close()) }()
	go redlockfile.Follow(ctx, locker, path)
	return locker.Lead(ctx, "leader", func(ctx context.Context, lock *redlock.Lock) error {
		fmt.Fprintln(out, "leading, token", lock.Token())
		<-ctx.Done() // the leader must stop its work when ctx ends
		return context.Cause(ctx)
	})
}
