package configfile

import (
	"context"
	"testing"
	"time"
)

// A command that hangs is killed when the dial times out, and a child that keeps its output open delays nothing.
func TestPasswordCommandThatHangsIsKilled(t *testing.T) {
	c := &Config{PasswordCommand: []string{"sh", "-c", "sleep 600 & wait"}}
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	begin := time.Now()
	if _, err := c.runPasswordCommand(ctx); err == nil || time.Since(begin) > 30*time.Second {
		t.Errorf("%v after %v", err, time.Since(begin))
	}
}
