package main

import (
	"context"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/redlock-go/redlock/examples/internal/testmasters"
)

func TestProgramPays(t *testing.T) {
	urls := testmasters.Listen(t, 3)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	ctx, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- run(ctx, urls, l) }()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+l.Addr().String()+"/orders/42", nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(answer.Body)
	answer.Body.Close()
	if answer.StatusCode != http.StatusOK || string(body) != "paid\n" || err != nil {
		t.Errorf("the response has the status %s and the body %q, %v; want 200 and \"paid\"", answer.Status, body, err)
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
