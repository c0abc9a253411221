package wrap

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"sync/atomic"
	"syscall"
	"time"
)

// Direction is who sent a message.
type Direction string

// The directions, as the client sees them.
const (
	Out Direction = "out" // from the client to the program
	In  Direction = "in"  // from the program to the client
)

// grace is how long the output of a program that has ended is awaited, since the last of it.
const grace = 500 * time.Millisecond

// Command is a program with the streams of its client.
type Command struct {
	Args    []string
	In, Out *os.File
	Err     *os.File
	// Tap gets the bytes before they are passed; it must not block. It does not keep the bytes.
	Tap func(Direction, []byte)
}

// Run runs the program until it ends. It closes In and Out when their other end is closed. The
// error is one of starting the program.
func (c Command) Run() (*os.ProcessState, error) {
	// Linux ends the program with the thread that started it.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()

	programIn, in, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("wrap: %w", err)
	}
	out, programOut, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("wrap: %w", err), programIn.Close(), in.Close())
	}
	signals := make(chan os.Signal, 16)
	for _, s := range forwarded {
		if !signal.Ignored(s) { // the program inherits that
			signal.Notify(signals, s)
		}
	}
	defer signal.Stop(signals)
	program := exec.CommandContext(context.Background(), c.Args[0], c.Args[1:]...) // signals alone end it
	program.Stdin, program.Stdout, program.Stderr = programIn, programOut, c.Err
	program.SysProcAttr = attributes()
	err = program.Start()
	_, _ = programIn.Close(), programOut.Close()
	if err != nil {
		_, _ = in.Close(), out.Close()
		return nil, fmt.Errorf("wrap: %w", err)
	}

	go func() {
		c.pass(in, c.In, Out, func() {})
		_ = in.Close()
		_ = c.In.Close() // the client's next write fails, as it would
	}()
	var ended atomic.Bool
	passed := make(chan struct{})
	go func() {
		defer close(passed)
		c.pass(c.Out, out, In, func() {
			if ended.Load() {
				_ = out.SetReadDeadline(time.Now().Add(grace))
			}
		})
		_ = out.Close()
		_ = c.Out.Close()
	}()
	done := make(chan struct{})
	defer close(done)
	go func() {
		for {
			select {
			case s := <-signals:
				if s != syscall.SIGPIPE { // of a stream of the wrapper
					_ = program.Process.Signal(s)
				}
			case <-done:
				return
			}
		}
	}()
	_ = program.Wait() // the state has it
	ended.Store(true)
	_ = out.SetReadDeadline(time.Now().Add(grace))
	<-passed
	return program.ProcessState, nil
}

// pass copies a stream until one of its ends is closed. before is called before each read.
func (c Command) pass(to, from *os.File, d Direction, before func()) {
	buf := make([]byte, 64<<10)
	for {
		before()
		n, err := from.Read(buf)
		if n > 0 {
			c.Tap(d, buf[:n])
			if _, err := to.Write(buf[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}
