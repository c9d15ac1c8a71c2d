package redlock_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/redlock-go/redlock/pool"
	"github.com/redlock-go/redlock/redlock"
	"github.com/redlock-go/redlock/redlock/admin"
)

// misuse calls a method with arguments that are valid, except for those that zero reports. It returns the text of the
// panic or of the error, which wraps ErrInvalid, or "" if the call succeeds.
func misuse(method reflect.Value, zero func(reflect.Type) bool) (text string) {
	defer func() {
		if v := recover(); v != nil {
			text = fmt.Sprint(v)
		}
	}()
	args := make([]reflect.Value, 0, method.Type().NumIn())
	for i := range method.Type().NumIn() {
		if method.Type().IsVariadic() && i == method.Type().NumIn()-1 {
			break
		}
		switch in := method.Type().In(i); {
		case zero(in):
			args = append(args, reflect.Zero(in))
		case in.Kind() == reflect.Interface:
			args = append(args, reflect.ValueOf(context.Background()))
		case in.Kind() == reflect.String:
			args = append(args, reflect.ValueOf("n"))
		case in.Kind() == reflect.Slice:
			args = append(args, reflect.ValueOf([]string{"n"}))
		case in.Kind() == reflect.Int64:
			args = append(args, reflect.ValueOf(time.Minute))
		case in.Kind() == reflect.Func:
			args = append(args, reflect.MakeFunc(in, func([]reflect.Value) []reflect.Value { panic("the function was called") }))
		default:
			args = append(args, reflect.Zero(in))
		}
	}
	for _, out := range method.Call(args) {
		switch v := out.Interface().(type) {
		case error:
			if !errors.Is(v, redlock.ErrInvalid) {
				return fmt.Sprintf("%T", v)
			}
			return v.Error()
		case string:
			if v != "" {
				return v
			}
		}
		if out.Type().CanSeq2() { // Watch
			for _, err := range out.Seq2() {
				return fmt.Sprint(err)
			}
		}
	}
	return ""
}

func isContext(t reflect.Type) bool { return t == reflect.TypeFor[context.Context]() }

func isFunc(t reflect.Type) bool { return t.Kind() == reflect.Func }

// H79: a method of the API that gets a nil context or function, or has a nil receiver, such as the lock of a failed
// call, says what is nil.
func TestNilIsExplained(t *testing.T) {
	virtual(t, 3, func(w *cluster) {
		l := w.locker()
		held := func() *redlock.Lock { return must(l.Lock(w.Context(), fmt.Sprint("held", w.Context(), time.Now())))(w) }
		all := must(l.LockAll(w.Context(), []string{"a", "b"}))(w)
		for _, one := range []struct {
			valid any
			nils  []any
			says  string // of a call of nils
		}{
			{l, []any{(*redlock.Locker)(nil), &redlock.Locker{}}, "the Locker is nil, or not made by Open or New"},
			{admin.Of(l), []any{admin.Admin{}}, "the Locker is nil, or not made by Open or New"},
			{held(), []any{(*redlock.Lock)(nil), &redlock.Lock{}}, "the lock is nil"},
			{all, []any{(*redlock.Locks)(nil)}, "the lock is nil"},
			{l.RWLock("n"), []any{(*redlock.RWLock)(nil), &redlock.RWLock{}}, "the RWLock is nil"},
			{l.Semaphore("n", 2), []any{(*redlock.Semaphore)(nil), &redlock.Semaphore{}}, "the Semaphore is nil"},
			{w.pool(), []any{(*pool.Pool)(nil), &pool.Pool{}}, "the Pool is nil"},
		} {
			of := reflect.TypeOf(one.valid)
			for i := range of.NumMethod() {
				name := of.String() + "." + of.Method(i).Name
				says := func(what, got, want string) {
					if !strings.Contains(got, want) {
						w.Errorf("%s %s: %q, want %q", name, what, got, want)
					}
				}
				method, takes := reflect.ValueOf(one.valid).Method(i), [2]bool{}
				for k := range method.Type().NumIn() {
					takes[0], takes[1] = takes[0] || isContext(method.Type().In(k)), takes[1] || isFunc(method.Type().In(k))
				}
				if of.Kind() == reflect.Pointer && strings.Contains(notInTheAPI, " "+of.Method(i).Name+" ") {
					continue
				}
				if takes[0] {
					says("with a nil context", misuse(method, isContext), " is nil")
				}
				if takes[1] {
					says("with a nil function", misuse(method, isFunc), `do "n": the function is nil`)
				}
				for _, none := range one.nils {
					says("of nil", misuse(reflect.ValueOf(none).Method(i), func(reflect.Type) bool { return false }), one.says)
				}
			}
		}
		if k, ok := redlock.FromContext(nil); k != nil || ok { //nolint:staticcheck // the mistake
			w.Errorf("FromContext of a nil context returned %v, %v", k, ok)
		}
	})
}

// notInTheAPI has the methods that private_test.go adds.
const notInTheAPI = " AbortChange Change Configuration FinishChange HeldOn Masters RaiseEpoch Ready " +
	"ReconfigureSlowly Warnings "

// An Unlock with a nil context fails, but does not leave the name locked.
func TestUnlockWithNilContextReleases(t *testing.T) {
	virtual(t, 3, func(w *cluster) {
		l := w.locker()
		k := must(l.Lock(w.Context(), "n"))(w)
		w.isError(k.Unlock(nil), redlock.ErrInvalid) //nolint:staticcheck // the mistake
		w.isError(k.Err(), redlock.ErrReleased)
		after(time.Second)
		w.wantOn("n", 0)
		all := must(l.LockAll(w.Context(), []string{"n", "o"}))(w)
		w.isError(all.Unlock(nil), redlock.ErrInvalid) //nolint:staticcheck // the mistake
		after(time.Second)
		w.wantOn("n", 0)
		w.wantOn("o", 0)
	})
}
