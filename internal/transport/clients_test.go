package transport

import (
	"slices"
	"testing"
)

func TestClientsOf(t *testing.T) {
	const text = "addr=127.0.0.1:1 name=web-2/7;prefix=p;epoch=1;list=0a flags=N db=0 cmd=evalsha lib-name=redlock\n" +
		"id=4 addr=127.0.0.1:2 name=web-1/9;prefix=a%20b;shard=2/3;epoch=0;list=0b flags=N db=0\n" +
		"id=5 addr=127.0.0.1:3 name=web-2/7;prefix=p;epoch=0;list=0a flags=P db=0 sub=1 cmd=subscribe\n" +
		"id=6 addr=127.0.0.1:4 name=own/1;prefix=p;epoch=0;list=0a flags=N db=0\n" +
		"id=7 addr=127.0.0.1:5 name=a;prefix=p;epoch=1;list=0a|b;prefix=p;epoch=2;list=0c flags=N db=0\n" +
		"id=8 addr=127.0.0.1:6 name=page;prefix=p;epoch=1;list=0a;observer flags=N db=0 cmd=evalsha lib-name=redlock\n" +
		"id=9 addr=127.0.0.1:7 name=redlock flags=N db=0 cmd=evalsha lib-name=redlock\n"
	want := []Client{
		{ClientName: ClientName{Label: "web-2/7", Prefix: "p", Epoch: 1, List: "0a"}, Named: true},
		{ClientName: ClientName{Label: "web-1/9", Prefix: "a b", Shard: "2/3", List: "0b"}, Named: true},
		{ClientName: ClientName{Label: "a", Prefix: "p", Epoch: 1, List: "0a"}, Named: true},
		{ClientName: ClientName{Label: "b", Prefix: "p", Epoch: 2, List: "0c"}, Named: true},
	}
	own := ownConnection{name: "own/1;prefix=p;epoch=0;list=0a", addr: "127.0.0.1:9", database: "0"}
	if got := clientsOf(text, own); !slices.Equal(got, want) {
		t.Errorf("clientsOf returned\n%+v, want\n%+v", got, want)
	}
}

// H164: a connection without a name of this library counts as a client if it may send scripts of this library or
// receive its messages.
func TestClientsWithoutNames(t *testing.T) {
	own := ownConnection{name: library, addr: "127.0.0.1:9", database: "3"}
	for text, client := range map[string]bool{
		"name= flags=N db=3 cmd=evalsha user=lock":                       true,
		"name= flags=N db=3 cmd=eval user=lock lib-name=":                true,
		"name= flags=N db=3 cmd=info user=lock lib-name=redlock":         true,
		"name= flags=P db=3 sub=1 psub=0 cmd=subscribe user=lock":        true,
		"name= flags=P db=3 sub=0 psub=0 ssub=1 cmd=ping user=lock":      true,
		"name=dialled flags=N db=3 cmd=evalsha user=lock":                true,
		"name=x;epoch=1 flags=N db=3 cmd=evalsha user=lock":              true, // another version
		"name=x;prefix=p;epoch=x flags=N db=3 cmd=evalsha user=lock":     true,
		"name= flags=N db=3 cmd=info user=lock":                          false,
		"name= flags=N db=0 cmd=evalsha user=lock":                       false, // another database
		"name= flags=N db=3 cmd=evalsha user=lock lib-name=go-redis":     false,
		"name=sentinel-1-pubsub flags=P db=3 sub=1 cmd=subscribe user=x": false,
	} {
		clients := clientsOf("id=1 addr=[::1]:7 "+text+"\n", own)
		if len(clients) != 0 != client {
			t.Errorf("%s: the clients are %+v, want one: %t", text, clients, client)
		}
		if client && (clients[0].Named || clients[0].User != "lock" || clients[0].Host != "::1") {
			t.Errorf("%s: the client is %+v", text, clients[0])
		}
	}
	if list := clientsOf("addr=127.0.0.1:9 name= flags=N db=3 cmd=evalsha\n", own); len(list) > 0 {
		t.Errorf("the own connection is listed: %+v", list)
	}
}
