package clickhouse

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/earshot-dev/earshot/core/attribution"
)

// TestSizeOfAnIdleStore: the size of the embedded store is looked at when rows were stored, and again after a look
// that failed or dropped some; that of a server, which may have other writers, each time.
func TestSizeOfAnIdleStore(t *testing.T) {
	for _, alone := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			k := keeper{stored: newArrivals()}
			var mu sync.Mutex
			looks, dropped, failed := 0, int64(0), error(nil)
			s := sizeKeeper{alone: alone, grown: &k.grown, pause: pause, drop: func(context.Context) (int64, string, error) {
				mu.Lock()
				defer mu.Unlock()
				looks++
				n, err := dropped, failed
				dropped, failed = 0, nil
				return n, "", err
			}}
			go s.keep(ctx, slog.New(slog.DiscardHandler))
			want := func(what string, n int) {
				t.Helper()
				time.Sleep(10 * sizeEvery)
				mu.Lock()
				defer mu.Unlock()
				if !alone {
					n = 10
				}
				if looks != n {
					t.Errorf("alone %t: %s: %d looks in ten, want %d", alone, what, looks, n)
				}
				looks = 0
			}
			time.Sleep(sizeEvery / 2) // the first look is over
			mu.Lock()
			if looks != 1 {
				t.Errorf("%d looks at the start", looks)
			}
			looks = 0
			mu.Unlock()
			want("nothing was stored", 0)
			k.note(time.Now())
			want("rows were stored", 1)
			k.note(time.Now())
			mu.Lock()
			dropped = 1
			mu.Unlock()
			want("some were dropped", 2)
			k.note(time.Now())
			mu.Lock()
			failed = errors.New("no answer")
			mu.Unlock()
			want("a look failed", 2)
		})
	}
}

// TestWorkWaitsForAnOpenEngine: work that is due waits while the embedded store has closed its engine, until rows are stored.
func TestWorkWaitsForAnOpenEngine(t *testing.T) {
	s := closedEngine(t)
	k := keeper{stored: newArrivals(), opened: s.stored}
	done := make(chan error, 1)
	go func() { done <- s.pause(t.Context(), 0) }()
	<-s.asked
	select {
	case <-done:
		t.Fatal("the work is done while the engine is closed")
	case <-time.After(50 * time.Millisecond):
	}
	k.note(time.Now())
	if err := <-done; err != nil {
		t.Error(err)
	}
	if err := s.open(t.Context(), 0); err != nil || len(s.asked) > 0 {
		t.Errorf("work that was postponed for long asks whether the engine is open: %v", err)
	}
	if err := (standby{}).pause(t.Context(), 0); err != nil {
		t.Errorf("a server: %v", err)
	}
}

// TestUnreadWaitsForAnOpenEngine: what derives from rows without a reader waits while the engine is closed, until there is a reader or
// rows are stored.
func TestUnreadWaitsForAnOpenEngine(t *testing.T) {
	s := closedEngine(t)
	for name, opens := range map[string]func(*keeper){
		"reader": func(k *keeper) { k.unread.Store(false); k.read.ring() },
		"rows":   func(k *keeper) { k.note(time.Now()) },
	} {
		k := keeper{stored: newArrivals(), opened: s.stored}
		k.unread.Store(true)
		done := make(chan error, 1)
		go func() { done <- k.reader(t.Context(), s.standby, 0) }()
		<-s.asked
		select {
		case <-done:
			t.Fatalf("%s: it is done while the engine is closed", name)
		case <-time.After(50 * time.Millisecond):
		}
		opens(&k)
		if err := <-done; err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// closed is a store that says that its engine is closed.
type closed struct {
	standby
	asked chan struct{}
}

func closedEngine(t *testing.T) closed {
	t.Helper()
	socket := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	asked := make(chan struct{}, 10)
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintln(w, "yes")
		asked <- struct{}{}
	})}
	go func() { _ = server.Serve(l) }()
	t.Cleanup(func() { server.Close() })
	return closed{standby{socket: socket, stored: new(bell)}, asked}
}

// TestBudgetsOfAClosedStore: budgets are looked at when rows were stored since, also where the embedded store has closed its engine
// seconds behind them; where none were, the look opens no engine.
func TestBudgetsOfAClosedStore(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	var statements atomic.Int32
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/standby" {
			fmt.Fprintln(w, "yes")
			return
		}
		statements.Add(1)
		http.Error(w, "it fails", http.StatusInternalServerError)
	})}
	go func() { _ = server.Serve(l) }()
	defer server.Close()
	x, err := New(t.Context(), Settings{
		Conn:    ConnSettings{DSN: "http+unix://default@" + url.PathEscape(socket) + "/earshot"},
		Budgets: []attribution.Budget{{Name: "day"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer x.conn.Close()
	x.ready = true
	if list, err := x.Alerts(t.Context(), time.Now()); list != nil || err != nil || statements.Load() > 0 {
		t.Errorf("nothing was stored: %v, %v after %d statements", list, err, statements.Load())
	}
	x.alerting.spent.Store(true)
	for range 2 { // a look that fails is taken again
		if _, err := x.Alerts(t.Context(), time.Now()); err == nil || statements.Swap(0) == 0 {
			t.Errorf("rows were stored: %v, and no statement", err)
		}
	}
}

// TestUnread: rows without a reader keep what derives from them waiting, for so long or until there is one; budgets are one.
func TestUnread(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := &Exporter{}
		waits := func(most time.Duration) time.Duration {
			t.Helper()
			began := time.Now()
			if err := x.keeper.reader(t.Context(), standby{}, most); err != nil {
				t.Error(err)
			}
			return time.Since(began)
		}
		if took := waits(time.Minute); took != 0 {
			t.Errorf("with a reader: %s", took)
		}
		x.Unread(true)
		if took := waits(time.Minute); took != time.Minute {
			t.Errorf("without: %s", took)
		}
		time.AfterFunc(time.Second, func() { x.Unread(false) })
		if took := waits(time.Minute); took != time.Second {
			t.Errorf("until there is one: %s", took)
		}
		x.settings.Budgets = make([]attribution.Budget, 1)
		x.Unread(true)
		if took := waits(time.Minute); took != 0 {
			t.Errorf("with a budget: %s", took)
		}
	})
}
