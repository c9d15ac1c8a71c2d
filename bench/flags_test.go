package main

import (
	"bytes"
	"errors"
	"flag"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestFlagsDefaults(t *testing.T) {
	c, err := parseFlags(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(c.goroutines, []int{1, 8, 64}) || c.rounds != 3 || c.duration != 500*time.Millisecond ||
		!c.wants(scenarioPairs) || !c.wants(scenarioFaults) || c.wants(scenarioSplit) || !c.brief || c.verbose ||
		len(c.entrants) != 6 || c.masters != nil || c.json {
		t.Errorf("the defaults are %+v", c)
	}
}

func TestMastersBecomeURLs(t *testing.T) {
	c, err := parseFlags([]string{"-masters", "a:1, [::1]:2 ,rediss://u:p@b:3/0"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"redis://a:1", "redis://[::1]:2", "rediss://u:p@b:3/0"}; !slices.Equal(c.masters, want) {
		t.Errorf("the masters are %q, want %q", c.masters, want)
	}
}

func TestBadFlagsAreReportedWithoutPassword(t *testing.T) {
	for _, c := range []struct{ args, want string }{
		{"-masters a", "not of the form redis://host:port"},
		{"-masters ,", "the list is empty"},
		{"-masters a:1,b:1,a:1", "entry 3 is a duplicate"},
		{"-masters http://:secret@a", "not one of redis, rediss"},
		{"-masters redis://:secret@a:%zz", "cannot be parsed as a URL"},
		{"-masters :secret@a:1", "it has no scheme"},
		{"-masters a:1 -scenario faults", "cannot be used with -masters"},
		{"-goroutines 1,0", `"0" is not a number from 1`},
		{"-goroutines 1,x", `"x" is not a number`},
		{"-goroutines 4,4", "entry 2 is a duplicate"},
		{"-goroutines ,", "the list is empty"},
		{"-scenario pair", `"pair" is not one of`},
		{"-impl flor", `"flor" is an unknown contender`},
		{"-impl ,", "the list is empty"},
		{"-impl redsync,redsync/redigo", "a duplicate"},
		{"-scenario ,", "the list is empty"},
		{"-rounds 0", "0: must be from 1"},
		{"-duration 1us", "1µs: must be from 1ms"},
		{"-duration fast", "fast"},
		{"-what", "what"},
		{"more", `unexpected argument "more"`},
	} {
		_, err := parseFlags(strings.Fields(c.args), nil)
		if !errors.Is(err, errUsage) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: the error is %v, want an error that contains %q", c.args, err, c.want)
		} else if strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: the error contains the password: %v", c.args, err)
		}
	}
}

func TestHelpExplainsEveryFlag(t *testing.T) {
	var out bytes.Buffer
	if _, err := parseFlags([]string{"-h"}, &out); !errors.Is(err, flag.ErrHelp) {
		t.Fatalf("-h returned %v, want flag.ErrHelp", err)
	}
	for _, want := range []string{"usage: go run ./bench", "-masters", "-rounds", "-duration", "-goroutines", "-scenario",
		"-impl", "-v", "-html", "-compare", "-from", "-out", "-short", "-json", "-check", "exit codes"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the help does not contain %q", want)
		}
	}
}
