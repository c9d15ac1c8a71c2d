package transport

import (
	"slices"
	"testing"
)

func TestClientsOf(t *testing.T) {
	const text = "id=3 addr=127.0.0.1:1 name=web-2/7;epoch=1 flags=N db=0 cmd=evalsha lib-name=redlock lib-ver=\n" +
		"id=4 addr=127.0.0.1:2 name=web-1/9;epoch=0 flags=N\n" +
		"id=5 addr=127.0.0.1:3 name=web-2/7;epoch=0 flags=P\n" +
		"id=6 addr=127.0.0.1:4 name=own/1;epoch=0 flags=N\n" +
		"id=7 addr=127.0.0.1:5 name=other flags=N lib-name=jedis\n" +
		"id=8 addr=127.0.0.1:6 name=other;epoch=x flags=N lib-name=\n" +
		"id=9 addr=127.0.0.1:7 name= flags=N\n"
	want := []Client{{"web-2/7", 1}, {"web-1/9", 0}}
	if got := clientsOf(text, "own/1;epoch=0"); !slices.Equal(got, want) {
		t.Errorf("clientsOf returned %v, want %v", got, want)
	}
}
