package redlocktest_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/redlock-go/redlock/internal/must"
	"github.com/redlock-go/redlock/redlock"
	"github.com/redlock-go/redlock/redlock/redlocktest"
)

// Admit takes the URLs of servers with a port. It refuses others at once, since it cannot reach their servers, however
// long it tries.
func TestAdmitSchemes(t *testing.T) {
	masters := redlocktest.New(2, redlocktest.Fresh())
	defer masters.Close()
	urls := must.Get(masters.Listen())(t)
	urls[0] = strings.Replace(urls[0], "redis", "valkey", 1)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	must.Do(t, redlocktest.Admit(ctx, urls...))
	locker := must.Get(redlock.Open(urls))(t)
	defer locker.Close()
	must.Do(t, locker.WaitReady(ctx))

	for _, other := range []string{
		"unix:///tmp/redis.sock", "redis+sentinel://127.0.0.1/main", "valkeys+cluster://127.0.0.1?buckets=3",
	} {
		err := redlocktest.Admit(ctx, other)
		if err == nil || ctx.Err() != nil || !strings.Contains(err.Error(), "is not one of redis") {
			t.Errorf("%s: %v", other, err)
		}
	}
}
