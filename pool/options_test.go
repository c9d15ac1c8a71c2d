package pool_test

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/redlock-go/redlock/internal/transport"
	"github.com/redlock-go/redlock/pool"
)

// Invalid arguments are rejected, for all masters and for one, with an error that quotes the value.
func TestInvalidOptionsAreRejected(t *testing.T) {
	for _, c := range []struct {
		option pool.Option
		says   string
	}{
		{nil, "nil"},
		{pool.WithTimeout(-time.Second), "-1s"},
		{pool.WithTimeout(0), "0s"},
		{pool.WithTimeout(500), "timeout 500ns: must be from 1ms to 1h"},
		{pool.WithTimeout(math.MaxInt64), "must be from 1ms to 1h"},
		{pool.WithDialTimeout(time.Hour + 1), "1h0m0.000000001s: must be from 1ms to 1h"},
		{pool.WithDialTimeout(-1), "-1ns"},
		{pool.WithDialTimeout(time.Millisecond - 1), "in nanoseconds"},
		{transport.WithHeartbeat(0), "heartbeat"},
		{transport.WithRedial(time.Second, time.Millisecond), "1ms"},
		{transport.WithRedial(0, time.Millisecond), "0s"},
		{transport.WithQueueLimit(0), "limit 0"},
		{pool.WithDatabase(-1), "-1"},
		{pool.WithDialer(nil), "nil"},
		{pool.WithTLSConfig(nil), "nil"},
		{pool.WithCredentials("user", ""), "without a password"},
		{pool.WithCredentialsProvider(nil), "nil"},
		{pool.WithSentinelCredentials("user", ""), "empty"},
		{pool.WithSentinelTLS(nil), "nil"},
	} {
		_, ofAll := pool.Open([]string{"redis://h"}, c.option)
		_, ofOne := pool.New([]pool.Master{pool.URL("redis://h", c.option)})
		for _, err := range []error{ofAll, ofOne} {
			if !errors.Is(err, pool.ErrInvalid) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("the error is %v, without %q", err, c.says)
			}
		}
		if !strings.Contains(ofOne.Error(), `"h:6379"`) {
			t.Errorf("the error does not name the master: %v", ofOne)
		}
	}
}
