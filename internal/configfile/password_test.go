package configfile

import (
	"context"
	"testing"
	"time"
)

// If a password command hangs, the command is killed when the dial times out. A child of the command that keeps the
// output open does not delay the return of runPasswordCommand.
func TestPasswordCommandThatHangsIsKilled(t *testing.T) {
	c := &Config{PasswordCommand: []string{"sh", "-c", "sleep 600 & wait"}}
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	begin := time.Now()
	if _, err := c.runPasswordCommand(ctx); err == nil || time.Since(begin) > 30*time.Second {
		t.Errorf("the password command returned %v after %v, want an error within 30s", err, time.Since(begin))
	}
}
