package model

import (
	"fmt"
	"slices"
	"strings"
)

// askedMasters names the masters that get the acquire of a new attempt.
func (s *state) askedMasters(noGuard bool) string {
	var list []string
	for i := range s.column {
		if s.column[i].mark != quarantined || noGuard {
			list = append(list, fmt.Sprint(i+1))
		}
	}
	return masterList(list)
}

// sentTo names the masters to which a client that gives up sends its release.
func (s *state) sentTo(c int, heard []int) string {
	var list []string
	for i := range s.column {
		if s.column[i].vote[c] != unasked && !slices.Contains(heard, i) {
			list = append(list, fmt.Sprint(i+1))
		}
	}
	return masterList(list)
}

func hearing(heard []int) string {
	if len(heard) == 0 {
		return ""
	}
	var list []string
	for _, i := range heard {
		list = append(list, fmt.Sprint(i+1))
	}
	return ", having heard no from " + masterList(list)
}

func masterList(list []string) string {
	switch len(list) {
	case 0:
		return "none"
	case masters:
		return "all masters"
	}
	return "master " + strings.Join(list, " and ")
}

// beginning describes a new attempt of c with a chosen ballot.
func (s *state) beginning(c int, doubled uint8, noGuard bool) string {
	return fmt.Sprintf("%s begins attempt %d with %s: acquire to %s", letter(c), s.attempt[c]+1, s.compare(doubled),
		s.askedMasters(noGuard))
}

// compare describes how a chosen ballot compares with the others; see choices.
func (s *state) compare(doubled uint8) string {
	others := len(s.choices()) / 2
	switch {
	case others == 0:
		return "a ballot"
	case doubled%2 == 0:
		return "the same ballot as another's"
	case int(doubled/2) == others:
		return "the largest ballot so far"
	}
	return fmt.Sprintf("a ballot smaller than %d of those before", others-int(doubled/2))
}

func repeated(again int) string {
	if again == 1 {
		return ", and will get it once more"
	}
	return ""
}

func holdName(h int) string { return fmt.Sprintf("%s%d", letter(h/attempts), h%attempts+1) }
