package main

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	_ "embed" // for the page
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/redlock-go/redlock/redlock"
)

//go:embed web.html
var webPage string

// webTokenVariable is the environment variable that contains the password of the page.
const webTokenVariable = "REDLOCK_WEB_TOKEN"

const webLong = `Serves a page that shows the masters (state, vote, latency, memory, remaining quarantine), the held
names (holder, age, remaining TTL, waiters), and recent losses and refusals. While a browser shows the page, it is
updated once a second; otherwise the command reads nothing from the masters.

The page follows the masters in the file of --config when they change. It never blocks a change: in CLIENT LIST its
connections are named redlock-web@HOST/PID and observer.

As status does, each update acquires and releases a probe lock, so both say the same; the command writes nothing else.
With --read-only it writes nothing, for a user that may not: a master that answers, but refuses every lock, is then
shown as voting, and only its number of refused commands grows. Names are found by scanning, as with ls, so new names
on a master with very many keys appear late. A restricted user also needs the right +scan.

By default, only this host can reach the page. If --listen is another address, the page requires a password, with
any user name: the value of REDLOCK_WEB_TOKEN, or a random password, which is printed. The server has no TLS: in
other networks, put a TLS proxy in front of it, or use ssh -L 8600:localhost:8600.`

func webCommand(a *app) *cobra.Command {
	var listen string
	var readOnly bool
	cmd := &cobra.Command{
		Use:   "web [URL...]",
		Short: "serve a page that shows the masters, the held names and the lost locks",
		Long:  webLong,
		Example: `  redlock web --config locks.json
  redlock web --listen :8600 --config locks.json`,
		RunE: func(cmd *cobra.Command, args []string) error {
			token := os.Getenv(webTokenVariable)
			if token != "" && len(token) < 16 {
				return wrongCall(cmd, fmt.Errorf("redlock web: %s has fewer than 16 characters: set a longer password",
					webTokenVariable))
			}
			config, err := a.deployment.read(cmd, args)
			if err != nil {
				return wrongCall(cmd, err)
			}
			c, err := a.deployment.openFollowing(config, observer, redlock.WithLabel(webLabel()))
			if err != nil {
				return wrongCall(cmd, err)
			}
			defer c.close()
			ctx, stop := signal.NotifyContext(cmd.Context(), interrupts...)
			defer stop()
			looker := newWebLooker(ctx, c)
			looker.readOnly = readOnly
			if err := serveWeb(ctx, a.stdout, &webServer{token, looker}, listen); err != nil {
				return &exit{exitDanger, fmt.Errorf("redlock web: %w", err)}
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&listen, "listen", "127.0.0.1:8600", "address on which the page is served")
	cmd.Flags().BoolVar(&readOnly, "read-only", false, "acquire no probe locks")
	return cmd
}

// webLabel returns the label of the client of the page, as CLIENT LIST shows it.
func webLabel() string {
	host, _ := os.Hostname() // "" if it is unknown
	return fmt.Sprintf("redlock-web@%s/%d", host, os.Getpid())
}

// serveWeb serves the page until ctx ends.
func serveWeb(ctx context.Context, stdout io.Writer, s *webServer, listen string) error {
	l, err := net.Listen("tcp", listen)
	if err != nil {
		return err
	}
	addr := l.Addr().(*net.TCPAddr)
	if !addr.IP.IsLoopback() && s.token == "" {
		s.token = rand.Text()
	}
	text := fmt.Sprintf("redlock web: http://%v/", addr)
	if s.token != "" && os.Getenv(webTokenVariable) == "" {
		text += " with any user name and the password " + s.token
	}
	fmt.Fprintln(stdout, text)
	server := &http.Server{
		Handler: s.handler(), ReadHeaderTimeout: 10 * time.Second,
		BaseContext: func(net.Listener) context.Context { return ctx },
	}
	context.AfterFunc(ctx, func() { server.Close() })
	if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// A webServer serves the page and its events.
type webServer struct {
	token  string // the password; "" for none
	looker *webLooker
}

// handler returns the handler of all requests: GET of the page and of its events.
func (s *webServer) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", s.page)
	mux.HandleFunc("GET /events", s.events)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.token == "" && !localHost(r.Host) { // DNS rebinding: the name of another site leads to this host
			http.Error(w, "use the address that redlock web has printed", http.StatusForbidden)
			return
		}
		_, got, _ := r.BasicAuth()
		if s.token != "" && subtle.ConstantTimeCompare([]byte(got), []byte(s.token)) != 1 {
			w.Header().Set("WWW-Authenticate", `Basic realm="redlock web", charset="UTF-8"`)
			http.Error(w, "use the password that redlock web has printed", http.StatusUnauthorized)
			return
		}
		mux.ServeHTTP(w, r)
	})
}

// localHost reports whether the Host header of a request is localhost or a loopback address.
func localHost(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	ip := net.ParseIP(strings.Trim(host, "[]"))
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// page sends the page. The content security policy allows only the script of the page.
func (s *webServer) page(w http.ResponseWriter, _ *http.Request) {
	nonce := rand.Text()
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Security-Policy", fmt.Sprintf("default-src 'none'; script-src 'nonce-%[1]s'; "+
		"style-src 'nonce-%[1]s'; img-src data:; connect-src 'self'; base-uri 'none'; form-action 'none'; "+
		"frame-ancestors 'none'", nonce))
	w.Header().Set("Cache-Control", "no-store")
	fmt.Fprint(w, strings.ReplaceAll(webPage, "NONCE", nonce))
}

// events sends the state once a second, until the viewer disconnects. The parameter filter selects names.
func (s *webServer) events(w http.ResponseWriter, r *http.Request) {
	filter := r.URL.Query().Get("filter")
	if len(filter) > webFilterSize {
		http.Error(w, "the filter is too long", http.StatusBadRequest)
		return
	}
	done, ok := s.looker.use(filter)
	if !ok {
		http.Error(w, "too many different filters are in use", http.StatusServiceUnavailable)
		return
	}
	defer done()
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	ticker := time.NewTicker(webEvery)
	defer ticker.Stop()
	for to := http.NewResponseController(w); ; {
		state := s.looker.state(filter)
		_ = to.SetWriteDeadline(time.Now().Add(10 * time.Second)) // fails if the connection has no deadlines
		if _, err := fmt.Fprintf(w, "data: %s\n\n", state); err != nil || to.Flush() != nil {
			return
		}
		select {
		case <-ticker.C:
		case <-r.Context().Done():
			return
		}
	}
}
