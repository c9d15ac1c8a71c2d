package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"net"
)

// twoAddresses is a name that leads to 127.0.0.1 and 127.0.0.2. No other name is in the DNS of the tests.
const twoAddresses = "two.test"

func init() {
	net.DefaultResolver = &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		client, server := net.Pipe()
		go func() {
			defer server.Close()
			answerDNS(server)
		}()
		return client, nil
	}}
}

// answerDNS answers queries as a DNS server does over TCP.
func answerDNS(c net.Conn) {
	for {
		var size [2]byte
		if _, err := io.ReadFull(c, size[:]); err != nil {
			return
		}
		query := make([]byte, binary.BigEndian.Uint16(size[:]))
		if _, err := io.ReadFull(c, query); err != nil || len(query) < 12 {
			return
		}
		end := 12 + bytes.IndexByte(query[12:], 0) + 5 // of the question: the name, the type and the class
		question := query[12:end]
		var answers [][]byte
		const a = 1 // the type of an address
		if bytes.HasPrefix(question, []byte("\x03two\x04test\x00")) && question[len(question)-3] == a {
			answers = [][]byte{{127, 0, 0, 1}, {127, 0, 0, 2}}
		}
		reply := append([]byte{query[0], query[1], 0x81, 0x80, 0, 1, 0, byte(len(answers)), 0, 0, 0, 0}, question...)
		for _, ip := range answers {
			reply = append(append(reply, 0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4), ip...)
		}
		if _, err := c.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(reply))), reply...)); err != nil {
			return
		}
	}
}
