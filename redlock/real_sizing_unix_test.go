//go:build unix

package redlock_test

import (
	"fmt"
	"regexp"
	"strconv"
	"sync"
	"syscall"
	"testing"

	"github.com/gomodule/redigo/redis"

	"github.com/redlock-go/redlock/internal/client"
	"github.com/redlock-go/redlock/internal/heartbeat"
	"github.com/redlock-go/redlock/internal/redisproc"
)

var cpuOf = regexp.MustCompile(`used_cpu_(?:sys|user):([0-9.]+)`)

// worked returns the processor time that a server has used, in microseconds.
func worked(b *testing.B, s *redisproc.Server) (us float64) {
	b.Helper()
	c, err := redis.DialURL(s.URL())
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	info, err := redis.String(c.Do("INFO", "cpu"))
	if err != nil {
		b.Fatal(err)
	}
	for _, found := range cpuOf.FindAllStringSubmatch(info, -1) {
		seconds, _ := strconv.ParseFloat(found[1], 64)
		us += seconds * 1e6
	}
	return us
}

// used returns the processor time that this process has used, in microseconds.
func used(b *testing.B) float64 {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return float64(u.Utime.Nano()+u.Stime.Nano()) / 1e3
}

// BenchmarkSizing measures the figures of docs/performance.md, as processor times: the cost of a pair of Lock and
// Unlock of a free name for each of five masters and for the client program, with one call at a time and with 64
// calls, which share messages; and the cost of a heartbeat for a master.
func BenchmarkSizing(b *testing.B) {
	for _, calls := range []int{1, 64} {
		b.Run(fmt.Sprint("calls=", calls), func(b *testing.B) {
			f := newDeployment(b, 5)
			l := f.admitted()
			client.SetOf(l).AwaitKnown(b.Context())
			sum := func() (us float64) {
				for _, s := range f.servers {
					us += worked(b, s)
				}
				return us
			}
			server, program := sum(), used(b)
			b.ResetTimer()
			var wg sync.WaitGroup
			for k := range calls {
				wg.Go(func() {
					name := fmt.Sprint("orders:", k)
					for i := k; i < b.N; i += calls {
						lock, err := l.Lock(b.Context(), name)
						if err == nil {
							err = lock.Unlock(b.Context())
						}
						if err != nil {
							b.Error(err)
							return
						}
					}
				})
			}
			wg.Wait()
			b.StopTimer()
			b.ReportMetric((used(b)-program)/float64(b.N), "us-program/pair")
			b.ReportMetric((sum()-server)/float64(b.N)/5, "us-master/pair")
		})
	}
	b.Run("heartbeat", func(b *testing.B) {
		f := newDeployment(b, 1)
		c, err := redis.DialURL(f.urls[0])
		if err != nil {
			b.Fatal(err)
		}
		defer c.Close()
		command, args := heartbeat.Call(false).Args("", false)
		before := worked(b, f.servers[0])
		for b.Loop() {
			if _, err := c.Do(command, args...); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric((worked(b, f.servers[0])-before)/float64(b.N), "us-master/heartbeat")
	})
}
