package transport

import (
	"testing"

	"github.com/gomodule/redigo/redis"
)

// The place in a script, which Redis 7 adds to some errors, is not in the text of an error.
func TestErrorTextsNameNoScript(t *testing.T) {
	for reply, want := range map[redis.Error]string{
		"OOM command not allowed when used memory > 'maxmemory'. " +
			"script: 35ffe202b79455ce65ee3c6d91f67829cf98a19b, on @user_script:40.": "pool: a:1: acquire: OOM command not " +
			"allowed when used memory > 'maxmemory'.",
		"ERR script: none": "pool: a:1: acquire: ERR script: none",
	} {
		if got := (&Error{Addr: "a:1", Op: "acquire", Err: reply}).Error(); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}
