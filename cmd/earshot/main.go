// Command earshot is an observability sidecar for AI agents: it reads an agent
// deployment's traffic, decodes it in plugin processes, and emits spans and
// ClickHouse rows. `earshot --help` lists the commands.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/earshot-dev/earshot/core/sandbox"
	"github.com/earshot-dev/earshot/core/sdk"
	"github.com/earshot-dev/earshot/plugins"
)

// Exit codes.
const (
	exitFailed = 1
	exitUsage  = 2 // of the command line or of the configuration

	exitInterrupted = 130 // by Ctrl-C or SIGTERM, as shells have it
)

func main() {
	if serves() {
		return
	}
	os.Exit(run())
}

// serves reports whether this process is a bundled decoder, or enters the cell of any decoder:
// this executable again, as a process of its own. If so, it has done its work.
func serves() bool {
	if len(os.Args) != 3 {
		return false
	}
	switch os.Args[1] {
	case cellCommand:
		fmt.Fprintln(os.Stderr, "earshot:", sandbox.Enter(os.Args[2]))
		os.Exit(exitFailed)
	case decoderCommand:
		sandbox.HideMemory()
	default:
		return false
	}
	factory, ok := plugins.Bundled()[os.Args[2]]
	if !ok {
		fmt.Fprintf(os.Stderr, "earshot: no decoder %q is bundled\n", os.Args[2])
		os.Exit(exitUsage)
	}
	sdk.Serve(factory())
	return true
}

func run() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := newRoot().ExecuteContext(ctx)
	if err == nil {
		return 0
	}
	var status exitStatus
	if errors.As(err, &status) {
		return int(status)
	}
	if interrupted(ctx, err) {
		return exitInterrupted
	}
	fmt.Fprintln(&screen{w: os.Stderr}, "earshot:", err)
	var usage usageError
	if errors.As(err, &usage) {
		return exitUsage
	}
	var program notStarted
	if errors.As(err, &program) {
		return program.code()
	}
	return exitFailed
}

// interrupted reports whether an error says no more than that the command was interrupted, which its user knows.
func interrupted(ctx context.Context, err error) bool {
	return ctx.Err() != nil && errors.Is(err, context.Canceled) && strings.HasSuffix(err.Error(), context.Canceled.Error())
}

// usageError is an error of the command line or of the configuration.
type usageError struct{ error }

func (u usageError) Unwrap() error { return u.error }

// exitStatus is the status of a command that was run, which is ours, too.
type exitStatus int

func (s exitStatus) Error() string { return fmt.Sprintf("exit status %d", int(s)) }
