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
	"github.com/earshot-dev/earshot/cmd/earshot-store/internal/httpd"
	"github.com/earshot-dev/earshot/cmd/earshot-store/internal/release"
)

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
	if opt.check {
		do = check
	}
	if err := do(opt); err != nil {
		fmt.Fprintln(os.Stderr, "earshot-store:", err)
		os.Exit(1)
	}
	os.Exit(0) // not a return: the library's own exit handlers have nothing left to do, and could hang
}

// check finds the engine library.
func check(opt options) error {
	executable, _ := os.Executable()
	_, err := release.Find(opt.lib, os.Getenv, executable)
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
	if opt.watchStdin {
		go func() {
			io.Copy(io.Discard, os.Stdin)
			cancel()
		}()
	}

	executable, _ := os.Executable()
	lib, err := release.Find(opt.lib, os.Getenv, executable)
	if err != nil {
		return err
	}
	// The lock is taken before any effect on another store of the folder.
	unlock, err := lockPath(ctx, opt.path, opt.wait)
	if err != nil {
		return err
	}
	defer unlock()
	if opt.readyFile != "" { // of a store that was killed
		if err := os.Remove(opt.readyFile); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("remove old ready file: %w", err)
		}
	}
	listener, err := listen(opt.socket)
	if err != nil {
		return err
	}
	defer listener.Close()
	eng, err := engine.Open(engine.Config{Library: lib, Path: opt.path, Connections: opt.connections, MaxMemory: uint64(opt.maxMemory)})
	if err != nil {
		return err
	}
	spool := filepath.Join(opt.path, "tmp", "http")
	if err := os.MkdirAll(spool, 0o700); err != nil {
		return fmt.Errorf("make spool: %w", err)
	}

	server := httpd.New(eng, spool)
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(listener) }()
	if opt.readyFile != "" {
		if err := writeReady(opt.readyFile, opt.socket, eng.Version()); err != nil {
			return err
		}
		defer os.Remove(opt.readyFile)
	}
	fmt.Printf("listening on unix:%s\n", opt.socket)

	select {
	case <-ctx.Done():
	case <-ended:
	case err = <-failed:
	}
	return errors.Join(err, shutdown(server, eng, opt.shutdownTimeout))
}

// listen makes the socket, which its owner alone may connect to. The lock of the data folder
// is held, so a socket that exists is left by a store that was killed.
func listen(path string) (net.Listener, error) {
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("listen: remove the old socket: %w", err)
	}
	mask := syscall.Umask(0o177)
	defer syscall.Umask(mask)
	l, err := net.Listen("unix", path)
	if err != nil {
		return nil, fmt.Errorf("listen: %w", err)
	}
	return l, nil
}

// shutdown ends the statements and the engine. It never takes longer than the
// timeout and four seconds: a call that hangs in the library ends with the process.
func shutdown(server *httpd.Server, eng *engine.Engine, timeout time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	if err := server.Shutdown(ctx); err != nil {
		return errors.New("shutdown: a statement did not end in time; its data is as after a crash")
	}
	closed := make(chan struct{})
	go func() {
		eng.Close()
		close(closed)
	}()
	select {
	case <-closed:
		return nil
	case <-time.After(2 * time.Second):
		return errors.New("shutdown: the engine did not close in time")
	}
}

func versionLine() string {
	r, err := release.Current()
	if err != nil {
		return "earshot-store (" + err.Error() + ")"
	}
	return strings.Join([]string{"earshot-store", "engine", r.Spec()}, " ")
}
