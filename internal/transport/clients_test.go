package transport

import (
	"slices"
	"testing"
)

func TestClientNames(t *testing.T) {
	const text = "id=3 addr=127.0.0.1:1 name=web-2/7 db=0 cmd=evalsha lib-name=redlock lib-ver=\n" +
		"id=4 addr=127.0.0.1:2 name=web-1/9 db=0 lib-name=redlock\n" +
		"id=5 addr=127.0.0.1:3 name=web-1/9 db=0 lib-name=redlock\n" +
		"id=6 addr=127.0.0.1:4 name=own/1 db=0 lib-name=redlock\n" +
		"id=7 addr=127.0.0.1:5 name=other db=0 lib-name=jedis\n" +
		"id=8 addr=127.0.0.1:6 name=other db=0 lib-name=\n" +
		"id=9 addr=127.0.0.1:7 name= db=0\n" +
		"id=10 addr=127.0.0.1:8 name=old-server/1 db=0\n"
	want := []string{"old-server/1", "web-1/9", "web-2/7"}
	if got := clientNames(text, "own/1"); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
