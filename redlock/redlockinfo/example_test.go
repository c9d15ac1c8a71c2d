package redlockinfo_test

import (
	"fmt"

	"github.com/redlock-go/redlock/redlock/redlockinfo"
)

func ExampleFinding() {
	f := redlockinfo.Finding{
		Master: "10.0.0.1:6379", Severity: redlockinfo.Failure, About: "eviction",
		What: "it may evict locks", Risk: "its locks", Fix: "noeviction",
	}
	fmt.Println(f)
	// Output:
	// 10.0.0.1:6379: failure: eviction: it may evict locks. Risk: its locks. Fix: noeviction.
}

func ExampleSeverity() {
	for _, s := range []redlockinfo.Severity{redlockinfo.Notice, redlockinfo.Warning, redlockinfo.Failure} {
		fmt.Println(s)
	}
	// Output:
	// notice
	// warning
	// failure
}
