package app

import (
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/earshot-dev/earshot/core/internal/store"
)

// TestClosedStoreIsNotChecked: an embedded store without an engine is not asked whether it has the rows, those of
// the last batch among them; one with an engine is, seldom while it gets none.
func TestClosedStoreIsNotChecked(t *testing.T) {
	dir := t.TempDir()
	l, err := net.Listen("unix", filepath.Join(dir, "http.sock"))
	if err != nil {
		t.Fatal(err)
	}
	var closed atomic.Bool
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/ping":
			fmt.Fprintln(w, "Ok.")
		case closed.Load():
			fmt.Fprintln(w, "yes")
		default:
			fmt.Fprintln(w, "no")
		}
	})}
	go func() { _ = server.Serve(l) }()
	defer server.Close()
	s, err := store.Open(t.Context(), store.Settings{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	v := &storedCheck{runner: &runner{}}
	check := func(what string, after time.Duration, ask bool) {
		t.Helper()
		if got, asks := v.due(t.Context()); got != after || asks != ask {
			t.Errorf("%s: a check may be %s old, %t; want %s, %t", what, got, asks, after, ask)
		}
	}
	check("a server", storeEvery/2, true)
	v.runner.store = s
	check("an open store that gets nothing", idleStoreEvery, true)
	v.exported.Store(true)
	check("an open store that got a batch", storeEvery/2, true)
	closed.Store(true)
	check("a closed store that got a batch", 0, false)
}
