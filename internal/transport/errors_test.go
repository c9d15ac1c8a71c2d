package transport

import (
	"net"
	"testing"

	"github.com/gomodule/redigo/redis"

	"github.com/redlock-go/redlock/internal/must"
	"github.com/redlock-go/redlock/internal/transport/fault"
)

// If a server cannot be reached, the error contains the server's address only once.
func TestErrorTextsNameAddressOnce(t *testing.T) {
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	addr := l.Addr().String()
	_ = l.Close()
	want := "pool: " + addr + ": connect: master is down: connection refused"
	if err := waitDown(t, open(t, []string{"redis://" + addr}), 0, fault.ErrDown); err.Error() != want {
		t.Errorf("the error is  %v\nwant %s", err, want)
	}
}

// The error text omits the position in the script, which Redis 7 appends to some errors, and Redis 6.2 prepends to all.
func TestErrorTextsNameNoScript(t *testing.T) {
	for reply, want := range map[redis.Error]string{
		"OOM command not allowed when used memory > 'maxmemory'. " +
			"script: 35ffe202b79455ce65ee3c6d91f67829cf98a19b, on @user_script:40.": "pool: a:1: acquire: OOM command not " +
			"allowed when used memory > 'maxmemory'.",
		"ERR Error running script (call to f_35ffe202b79455ce65ee3c6d91f67829cf98a19b): @user_script:40: @user_script: 40: " +
			"-OOM command not allowed when used memory > 'maxmemory'.": "pool: a:1: acquire: OOM command not " +
			"allowed when used memory > 'maxmemory'.",
		"ERR script: none": "pool: a:1: acquire: ERR script: none; " + StepRefuses,
	} {
		if got := (&Error{Addr: "a:1", Op: "acquire", Err: reply}).Error(); got != want {
			t.Errorf("the error is  %s\nwant %s", got, want)
		}
	}
}
