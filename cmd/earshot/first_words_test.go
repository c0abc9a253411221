package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
)

// TestFirstWords: a person who does not know the commands yet gets a version, a way on from a flag that does not exist, and from a time in
// which nothing ran.
func TestFirstWords(t *testing.T) {
	h := newHome(t)
	alone := func(args ...string) (string, error) {
		var out strings.Builder
		c := newRoot()
		c.SetArgs(args)
		c.SetOut(&out)
		c.SetErr(&out)
		err := c.ExecuteContext(t.Context())
		return out.String(), err
	}
	if out, err := alone("--version"); err != nil || !strings.HasPrefix(out, "earshot ") || strings.Count(out, "\n") != 1 {
		t.Errorf("--version: %q, %v", out, err)
	}
	if _, err := alone("dlq", "list", "--nosuch"); err == nil || !strings.Contains(err.Error(), "`earshot dlq list --help`") || !errors.As(err, &usageError{}) {
		t.Errorf("a flag that does not exist: %v", err)
	}
	if _, err := alone("service", "nosuch"); err == nil || !strings.Contains(err.Error(), "`earshot service --help`") || !errors.As(err, &usageError{}) {
		t.Errorf("a command that does not exist: %v", err)
	}
	if _, _, err := h.try("dlq", "retry", "zzz"); err == nil || !strings.Contains(err.Error(), "no unresolved dead letter zzz") {
		t.Errorf("a dead letter that does not exist: %v", err)
	}
	if _, _, err := h.try("sessions", "-n", "0"); err == nil || !strings.Contains(err.Error(), "must be positive") {
		t.Errorf("no session at most: %v", err)
	}
	t.Setenv("HOME", "")
	if _, err := alone("discover"); err == nil || !strings.Contains(err.Error(), "name a configuration with -c") {
		t.Errorf("without a home directory: %v", err)
	}
	for command, want := range map[string]string{"who": "no usage from 20", "diff": "nothing ran from 20"} {
		if out, _ := h.run(command); !strings.HasPrefix(out, want) || !strings.Contains(out, "--since") {
			t.Errorf("%s: %q", command, out)
		}
	}
}

// TestInterrupted: a command that was interrupted states nothing that it has not done.
func TestInterrupted(t *testing.T) {
	h := newHome(t)
	ctx, stop := context.WithCancel(t.Context())
	stop()
	out, _, err := h.within(ctx, "plugin", "list")
	if out != "" || !interrupted(ctx, err) {
		t.Errorf("plugin list: %q, %v", out, err)
	}
	for _, err := range []error{errors.New("no rows"), fmt.Errorf("%w; the erasure is kept", context.Canceled)} {
		if interrupted(ctx, err) {
			t.Errorf("%v is not printed", err)
		}
	}
	if interrupted(t.Context(), context.Canceled) {
		t.Error("a command that nobody interrupted")
	}
}
