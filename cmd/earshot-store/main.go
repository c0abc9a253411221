// Command earshot-store is ClickHouse for a laptop, a test or a single host: it
// loads the engine as a library (libchdb) and serves ClickHouse's HTTP interface
// on a Unix socket. It is the only program of Earshot that loads a C library.
//
// The engine is fenced three times: its user has no right to a source outside of the tables
// (engine.Open), statements that name one are refused (sqltext.Guard), and the kernel lets
// the process reach its data folder and no network (fence, where the kernel has Landlock).
//
// Package internal/engine lists the traps of the engine, internal/httpd the differences from
// ClickHouse's own HTTP interface.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/earshot-dev/earshot/cmd/earshot-store/internal/engine"
	"github.com/earshot-dev/earshot/cmd/earshot-store/internal/fetch"
	"github.com/earshot-dev/earshot/cmd/earshot-store/internal/httpd"
	"github.com/earshot-dev/earshot/cmd/earshot-store/internal/release"
	"github.com/earshot-dev/earshot/cmd/earshot-store/internal/server"
	"github.com/earshot-dev/earshot/cmd/earshot-store/internal/standby"
)

// exitMissing is the exit code without an engine library, which --fetch mends.
const exitMissing = 3

func main() {
	opt, err := parseFlags(os.Args[1:], os.Stdout)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return
	case err != nil:
		fmt.Fprintln(os.Stderr, "earshot-store:", err)
		os.Exit(2)
	}
	if opt.version {
		fmt.Println(versionLine())
		return
	}
	do := run
	switch {
	case opt.check:
		do = check
	case opt.fetch:
		do = fetchEngine
	}
	if err := do(opt); err != nil {
		fmt.Fprintln(os.Stderr, "earshot-store:", err)
		if errors.Is(err, release.ErrMissing) {
			os.Exit(exitMissing)
		}
		os.Exit(1)
	}
	os.Exit(0) // not a return: the library's own exit handlers have nothing left to do, and could hang
}

// check finds the engine.
func check(opt options) error {
	if release.Executable(opt.engine) {
		return nil
	}
	executable, _ := os.Executable()
	_, err := release.Find(opt.engine, os.Getenv, executable)
	return err
}

// fetchEngine fetches the engine library, unless there is one.
func fetchEngine(opt options) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	rel, err := release.Current()
	if err != nil {
		return err
	}
	dir, err := rel.Dir(os.Getenv)
	if err != nil {
		return err
	}
	executable, _ := os.Executable()
	lib, err := release.Find("", os.Getenv, executable)
	if err != nil || filepath.Dir(lib) == dir { // a library in the cache is checked against its pin
		f := fetch.Fetcher{Release: rel, Dir: dir, Data: opt.path, Out: os.Stdout}
		_, err = f.Library(ctx)
	}
	return err
}

func run(opt options) error {
	if err := fence(opt); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	signals := []os.Signal{syscall.SIGTERM, os.Interrupt}
	if opt.parentPID == 0 { // otherwise it is the parent's end, see followParent
		signals = append(signals, syscall.SIGHUP)
	}
	ctx, stop := signal.NotifyContext(ctx, signals...)
	defer stop()
	ended, err := followParent(ctx, opt.parentPID)
	if err != nil {
		return err
	}
	go func() {
		select {
		case <-ended:
			cancel()
		case <-ctx.Done():
		}
	}()
	if opt.watchStdin {
		go func() {
			io.Copy(io.Discard, os.Stdin)
			cancel()
		}()
	}
	h, err := hold(ctx, opt)
	if err != nil {
		return err
	}
	defer h.release()
	var next *standby.State
	if h.inherited.Waits {
		next, err = standby.Wait(ctx, h.listener, h.inherited.Accepted(), h.lost)
	} else {
		next, err = serve(ctx, opt, h)
	}
	if opt.readyFile != "" && (next == nil || err != nil) {
		_ = os.Remove(opt.readyFile)
	}
	if ctx.Err() != nil || err != nil || next == nil {
		return ignoreEnd(err)
	}
	signal.Reset(signals...) // from here on one ends the process: it has no engine
	if ctx.Err() != nil {
		return nil
	}
	return h.become(next)
}

// ignoreEnd is the error, unless it is that the process was asked to end.
func ignoreEnd(err error) error {
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// serve answers with an engine until ctx ends, or until no statement has run for as long as the options have
// it: then it returns the state of a store without an engine, and the engine is closed.
func serve(ctx context.Context, opt options, h *held) (*standby.State, error) {
	served, version, err := open(ctx, opt, h.inherited)
	if err != nil {
		return nil, err
	}
	failed := make(chan error, 1)
	go func() { failed <- served.Serve(standby.Resumed(h.listener, h.inherited.Accepted())) }()
	if opt.readyFile != "" {
		if err := writeReady(opt.readyFile, opt.socket, version); err != nil {
			return nil, err
		}
	}
	if !h.again {
		fmt.Printf("listening on unix:%s\n", opt.socket)
	}
	select {
	case <-ctx.Done():
	case <-served.Silent():
		if err := h.keepSocket(); err != nil {
			return nil, errors.Join(err, shutdown(served, opt.shutdownTimeout))
		}
		_ = h.listener.SetDeadline(time.Now()) // ends accepting; who connects waits for the next program
		<-failed
		s := &standby.State{Waits: true, Connections: leave(served, opt.shutdownTimeout)}
		if err := shutdown(served, opt.shutdownTimeout); err != nil {
			fmt.Fprintln(os.Stderr, "earshot-store: close the engine:", err) // the next one finds the data as after a crash
		}
		return s, nil
	case err = <-failed:
	}
	return nil, errors.Join(err, shutdown(served, opt.shutdownTimeout))
}

// listen makes the socket, which its owner alone may connect to. The lock of the data folder
// is held, so a socket that exists is left by a store that was killed.
func listen(path string) (*net.UnixListener, error) {
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("listen: remove the old socket: %w", err)
	}
	mask := syscall.Umask(0o177)
	defer syscall.Umask(mask)
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("listen: %w", err)
	}
	return l, nil
}

// backend serves ClickHouse's HTTP interface.
type backend interface {
	Serve(net.Listener) error
	Shutdown(context.Context) error
	// Silent sends, once, when the backend should end until there is another statement.
	Silent() <-chan struct{}
	// Leave answers the requests that have begun and returns copies of the connections without one.
	Leave(context.Context) []int
}

// open opens the data folder with the engine library, or with a clickhouse executable, and returns the
// version of the library. Each has tables of its own there, and does not begin beside the other's.
func open(ctx context.Context, opt options, from standby.State) (backend, string, error) {
	own, others := filepath.Join(opt.path, "metadata"), filepath.Join(opt.path, server.Folder)
	if release.Executable(opt.engine) {
		if _, err := os.Stat(own); err == nil {
			return nil, "", fmt.Errorf("%s has the tables of the engine library, which %s does not read: type `earshot store fetch` for the library", opt.path, opt.engine)
		}
		s, err := server.Start(ctx, server.Config{Executable: opt.engine, Path: opt.path, MaxMemory: uint64(opt.maxMemory)})
		return s, "", err
	}
	if _, err := os.Stat(others); err == nil {
		return nil, "", fmt.Errorf("%s has the tables of a clickhouse executable, which the engine library does not read: name the executable in store.engine", opt.path)
	}
	executable, _ := os.Executable()
	lib, err := release.Find(opt.engine, os.Getenv, executable)
	if err != nil {
		return nil, "", err
	}
	eng, err := engine.Open(engine.Config{Library: lib, Path: opt.path, Connections: opt.connections, MaxMemory: uint64(opt.maxMemory)})
	if err != nil {
		return nil, "", err
	}
	spool := filepath.Join(opt.path, "tmp", "http")
	if err := os.RemoveAll(spool); err != nil { // of a process that was killed
		return nil, "", fmt.Errorf("empty spool: %w", err)
	}
	if err := os.MkdirAll(spool, 0o700); err != nil {
		return nil, "", fmt.Errorf("make spool: %w", err)
	}
	settings := httpd.Settings{Spool: spool, Silence: opt.standby, Flushed: httpd.Flushed{Asked: from.Asked, Writers: from.Writers}}
	return library{httpd.New(eng, settings), eng}, eng.Version(), nil
}

// library is a server of the engine library.
type library struct {
	*httpd.Server
	engine *engine.Engine
}

// Shutdown ends the statements and the engine. It takes two seconds longer than ctx at most: a call
// that hangs in the library ends with the process.
func (l library) Shutdown(ctx context.Context) error {
	if err := l.Server.Shutdown(ctx); err != nil {
		return errors.New("shutdown: a statement did not end in time; its data is as after a crash")
	}
	closed := make(chan struct{})
	go func() {
		l.engine.Close()
		close(closed)
	}()
	select {
	case <-closed:
		return nil
	case <-time.After(2 * time.Second):
		return errors.New("shutdown: the engine did not close in time")
	}
}

// leave returns the connections of a backend that accepts no more, for the next program.
func leave(b backend, timeout time.Duration) []int {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	return b.Leave(ctx)
}

// shutdown ends the statements and the engine. It never takes longer than the timeout and four seconds.
func shutdown(b backend, timeout time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	return b.Shutdown(ctx)
}

func versionLine() string {
	r, err := release.Current()
	if err != nil {
		return "earshot-store (" + err.Error() + ")"
	}
	return strings.Join([]string{"earshot-store", "engine", r.Spec()}, " ")
}
