package diagnose

import (
	"crypto/x509"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlock-go/redlock/internal/transport"
	"github.com/redlock-go/redlock/pool"
)

// The clock of this host is compared with the median of the masters: one wrong master does not accuse the host.
func TestClockOfThisHost(t *testing.T) {
	for _, c := range []struct {
		off  [3]time.Duration
		says string
	}{
		{[3]time.Duration{0, 0, -5 * time.Second}, ""},
		{[3]time.Duration{-3 * time.Second, -3 * time.Second, -3 * time.Second}, "its clock is 3s ahead of the median"},
		{[3]time.Duration{0, 2 * time.Second, 2 * time.Second}, "its clock is 2s behind the median"},
	} {
		synctest.Test(t, func(t *testing.T) {
			ms := newFakes(3)
			for i, off := range c.off {
				ms[i].extra = fmt.Sprintf("server_time_usec:%d\r\n", time.Now().Add(off).UnixMicro())
			}
			p := open(t, ms.urls(), pool.WithDialer(ms.dial))
			said := ""
			for _, f := range found(t, p) {
				if f.Master == ThisHost {
					said += f.What
				}
			}
			if said == "" != (c.says == "") || !strings.HasPrefix(said, c.says) {
				t.Errorf("with %v the finding is %q, want %q", c.off, said, c.says)
			}
			_ = p.Close()
			synctest.Wait()
		})
	}
}

// A certificate is reported within 14 days of its end, whichever in the chain ends first.
func TestCertificatesThatExpireSoon(t *testing.T) {
	now := time.Now()
	for days, warns := range map[int]bool{13: true, 15: false, -1: true} {
		f := facts{cfg: &transport.Config{}, certificates: []*x509.Certificate{
			{NotAfter: now.AddDate(1, 0, 0)}, {NotAfter: now.AddDate(0, 0, days)},
		}}
		f.expiry(now)
		if len(f.findings) > 0 != warns {
			t.Errorf("%d days before the end the findings are %v", days, f.findings)
		}
	}
}
