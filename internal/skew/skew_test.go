package skew_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/redlock-go/redlock/internal/skew"
)

// H115: the text of the largest differences has no negative duration.
func TestTextOfLargestDifferences(t *testing.T) {
	for _, off := range []time.Duration{math.MinInt64, math.MaxInt64} {
		text := skew.Text(off)
		if strings.Contains(text, "-") || !strings.Contains(text, "2562047h47m") {
			t.Errorf("the text of %d ns is %q", off, text)
		}
	}
}
