package recordtest

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/earshot-dev/earshot/core/internal/source"
)

// patience is how long a test waits for anything.
const patience = time.Minute

// Run runs the listener until stop, or the end of the test.
func (r *Recorder) Run(t testing.TB, l source.Listener) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- l.Run(ctx, r) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("run: %v", err)
		}
	})
	t.Cleanup(stop)
	return stop
}

// Want waits until the streams are as wanted, and fails the test if they never are.
func (r *Recorder) Want(t testing.TB, what string, wanted func([]Stream) bool) []Stream {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	s, ok := r.Wait(ctx, wanted)
	if !ok {
		t.Fatalf("%s: %+v", what, s)
	}
	return s
}

// Equal fails the test unless the texts are the same.
func Equal(t testing.TB, what, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("%s: got\n%s\nwant\n%s", what, got, want)
	}
}
