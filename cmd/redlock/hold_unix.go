//go:build unix

package main

import (
	"bufio"
	"crypto/rand"
	"encoding/gob"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/redlock-go/redlock/redlock"
)

// "redlock lock" uses two processes: the user starts the first one, which starts the holder, with the same arguments,
// in a new session.
//
//	redlock lock ──starts──► holder: acquires the lock, listens on the socket
//	     ◄──report: handle── (file 3)
//	prints the handle
//	     ──one byte────────► (standard input) keeps the lock from now on
//
// If the standard input of the holder ends before the byte, the first process was killed or could not print the
// handle. In that case no process can unlock the lock, so the holder releases the lock.

// startHolder starts the holder, and prints the handle that the holder reports.
func startHolder(con *console) error {
	failed := func(err error) error { return &exit{exitCannotRun, fmt.Errorf("redlock lock: %w", err)} }
	path, err := os.Executable()
	if err != nil {
		return failed(err)
	}
	reports, reported, err := os.Pipe()
	if err != nil {
		return failed(err)
	}
	logs, logged, err := os.Pipe()
	if err != nil {
		return failed(err)
	}
	closeFilesOnExec()
	cmd := exec.Command(path, append([]string{holdCommand}, os.Args[1:]...)...)
	cmd.ExtraFiles, cmd.Stderr = []*os.File{reported}, logged
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	accept, err := cmd.StdinPipe()
	if err == nil {
		err = cmd.Start()
	}
	reported.Close()
	logged.Close()
	if err != nil {
		return failed(err)
	}
	go func() { _, _ = io.Copy(con.stderr, logs) }() // until this process ends
	var r heldReport
	switch err := gob.NewDecoder(reports).Decode(&r); {
	case err != nil:
		return failed(errors.New("the process in the background has ended"))
	case r.Status != exitDone || r.Handle == "":
		return &exit{r.Status, errors.New(r.Error)}
	}
	if con.write(&r, r.Handle+"\n") != nil {
		return leave(exitRunNoOutput) // the standard input of the holder ends when this process exits
	}
	if _, err := accept.Write([]byte{'\n'}); err != nil {
		return failed(errors.New("the process in the background has ended"))
	}
	return nil
}

// closeFilesOnExec marks the inherited files of this process as close-on-exec, so that only this process keeps them
// open. The holder must not inherit a locked file or the writing end of a pipe from the script.
func closeFilesOnExec() {
	for fd := 3; fd < 256; fd++ {
		syscall.CloseOnExec(fd) // no effect if fd is not open
	}
}

// hold runs the holder. It acquires the lock, reports the handle, and keeps the lock until one of the events that
// lockLong lists.
func hold(con *console, f *lockFlags, names []string, open func() (*client, error)) error {
	reports := os.NewFile(3, "report")
	syscall.CloseOnExec(3)
	con.aside()
	signals, stop := catchSignals()
	defer stop()
	h := &holder{console: con, flags: f, signals: signals, ended: make(chan struct{}), accepted: make(chan bool, 1),
		abandoned: make(chan struct{})}
	var r heldReport
	l, err := open()
	if err == nil {
		defer l.close()
		r, err = h.begin(l.Locker, names)
	}
	if e := (&exit{code: exitRunUsage}); err != nil {
		errors.As(err, &e)
		r = heldReport{Status: e.code, Error: err.Error()}
	}
	_ = gob.NewEncoder(reports).Encode(&r) // if the parent has ended, awaitAcceptance notices it
	reports.Close()
	if err == nil {
		h.keep()
	}
	return leave(r.Status)
}

// A holder is the process that holds the lock.
type holder struct {
	*console
	flags     *lockFlags
	locks     *locks
	dir       string // directory of the socket
	handle    string // path of the socket, and later of the record: see record
	socket    *net.UnixListener
	signals   chan os.Signal
	ended     chan struct{} // closed when the process of --while has ended; never without --while
	accepted  chan bool     // receives true if the handle was printed, else false
	abandoned chan struct{} // closed if the handle was not printed
}

// awaitAcceptance waits for the byte that confirms that the handle was printed.
func (h *holder) awaitAcceptance() {
	_, err := bufio.NewReader(os.Stdin).ReadByte()
	if err != nil {
		close(h.abandoned)
	}
	h.accepted <- err == nil
}

// begin acquires the lock and opens the socket.
func (h *holder) begin(l *redlock.Locker, names []string) (r heldReport, err error) {
	if h.flags.while > 0 {
		if err := h.watchProcess(h.flags.while); err != nil {
			return r, err
		}
	}
	if h.dir, err = socketDir(); err != nil {
		return r, &exit{exitCannotRun, fmt.Errorf("redlock lock: %w", err)}
	}
	go h.awaitAcceptance()
	h.locks, err = acquire(h.console, l, &h.flags.acquireFlags, "redlock lock", names, h.signals, h.abandoned)
	if err != nil {
		return r, err
	}
	r.PID = os.Getpid()
	if err = h.listen(h.locks.of[0].Token()); err != nil {
		_ = h.release() // release prints its errors
		return r, &exit{exitCannotRun, fmt.Errorf("redlock lock: %w", err)}
	}
	r.Handle = h.handle
	for _, k := range h.locks.of {
		r.Locks = append(r.Locks, heldLock{k.Name(), k.Token()})
	}
	return r, nil
}

func (h *holder) release() error {
	return h.locks.release(h.console, "redlock lock", h.flags.ttl, h.flags.ttl)
}

// handleName returns the file name of a handle.
func handleName(token int64) string {
	random := make([]byte, 8)
	_, _ = rand.Read(random) // never fails
	return fmt.Sprintf("%s%x-%d", handlePrefix, random, token)
}

// listen opens the socket, and removes old records.
func (h *holder) listen(token int64) (err error) {
	names, _ := os.ReadDir(h.dir) // a record that stays does no harm
	for _, name := range names {
		info, err := name.Info()
		if err == nil && info.Mode().IsRegular() && time.Since(info.ModTime()) > recordAge {
			_ = os.Remove(filepath.Join(h.dir, name.Name()))
		}
	}
	h.handle = filepath.Join(h.dir, handleName(token))
	h.socket, err = net.ListenUnix("unix", &net.UnixAddr{Name: h.handle, Net: "unix"})
	return err
}

// socketDir returns the directory of the sockets, which only this user can reach.
func socketDir() (string, error) {
	dir := filepath.Join(os.TempDir(), "redlock-"+strconv.Itoa(os.Getuid()))
	if runtime := os.Getenv("XDG_RUNTIME_DIR"); filepath.IsAbs(runtime) {
		dir = filepath.Join(runtime, "redlock")
	}
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return "", err
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return "", err
	}
	of, ok := info.Sys().(*syscall.Stat_t)
	if !info.IsDir() || info.Mode().Perm()&0o077 != 0 || !ok || int(of.Uid) != os.Getuid() {
		return "", fmt.Errorf("%s: must be a directory of this user with the mode 0700", dir)
	}
	most := len(unix.RawSockaddrUnix{}.Path) - 1
	if n := len(filepath.Join(dir, handleName(maxToken))); n > most {
		return "", fmt.Errorf("%s: the path of a socket in this directory has %d bytes, and this system allows %d: set "+
			"XDG_RUNTIME_DIR to a directory with a shorter path", dir, n, most)
	}
	return dir, nil
}

// maxToken is the largest fencing token.
const maxToken = 1<<53 - 1

// keep holds the lock until one of the events that lockLong lists.
func (h *holder) keep() {
	defer h.socket.Close() // removes the file of the socket, unless a record has replaced it
	requests := make(chan net.Conn)
	go h.serve(requests)
	tick := time.NewTicker(look)
	defer tick.Stop()
	for {
		why := ""
		select {
		case yes := <-h.accepted:
			if yes {
				continue
			}
			why = "the handle was not printed"
		case c := <-requests:
			h.answer(c)
			return
		case s := <-h.signals:
			if !ends(s) {
				continue
			}
			why = fmt.Sprintf("the background process got the signal %q", s)
		case <-h.ended:
			why = fmt.Sprintf("process %d, given by --while, has ended", h.flags.while)
		case <-h.locks.done:
		case <-tick.C:
			if h.locks.Err() == nil { // done may be late, since timers ignore suspended time
				continue
			}
		}
		switch err := h.locks.Err(); {
		case errors.Is(err, redlock.ErrMaxHold):
			why = fmt.Sprintf("--max-hold %v has passed", h.flags.maxHold)
		case err != nil:
			why = err.Error()
		}
		h.record(h.report(h.release(), "the lock ended at "+inUTC(time.Now())+": "+why))
		return
	}
}

// report returns what "redlock unlock" reports after the release has returned err, if the lock has ended as the text
// ended says.
func (h *holder) report(err error, ended string) unlockReport {
	if err != nil && !errors.Is(err, redlock.ErrLost) {
		return unlockReport{exitRunNoQuorum, fmt.Sprintf("%s; but too few masters have confirmed the release, so the name "+
			"stays locked for at most %v from then: %v", ended, h.flags.ttl, err)}
	}
	return unlockReport{exitRunLost, ended}
}

// record replaces the socket by a file with a report, for later calls of "redlock unlock".
func (h *holder) record(r unlockReport) {
	if writeRecord(h.handle, r) == nil {
		h.socket.SetUnlinkOnClose(false)
	}
}

// serve accepts connections, and sends those that request the release to requests. A connection without a request does
// not delay the others.
func (h *holder) serve(requests chan<- net.Conn) {
	for {
		c, err := h.socket.Accept()
		if err != nil {
			return
		}
		go func() {
			_ = c.SetReadDeadline(time.Now().Add(unlockBound)) // cannot fail for a socket
			if line, err := bufio.NewReader(c).ReadString('\n'); err != nil || line != unlockRequest {
				c.Close()
				return
			}
			requests <- c // until the process ends
		}()
	}
}

// answer releases the lock, and sends the result to c.
func (h *holder) answer(c net.Conn) {
	defer c.Close()
	r := unlockReport{}
	err := h.locks.release(h.console, "redlock lock", h.flags.ttl, releaseLimit)
	switch {
	case errors.Is(err, redlock.ErrLost):
		r = unlockReport{exitRunLost, err.Error()}
	case err != nil:
		r = unlockReport{exitRunNoQuorum, err.Error()}
	}
	h.record(h.report(err, "the lock was unlocked at "+inUTC(time.Now())))
	_ = c.SetWriteDeadline(time.Now().Add(unlockBound))
	_ = json.NewEncoder(c).Encode(r) // unlock may have given up
}

// pollProcess implements watchProcess by polling, for systems that do not report the end of a process that is not a
// child.
func (h *holder) pollProcess(pid int) error {
	exists := func() bool { return !errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) }
	if !exists() {
		return fmt.Errorf("--while %d: no such process", pid)
	}
	go func() {
		defer close(h.ended)
		for exists() {
			time.Sleep(look)
		}
	}()
	return nil
}
