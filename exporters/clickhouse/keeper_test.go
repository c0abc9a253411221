package clickhouse

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
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
			var log bytes.Buffer
			go s.keep(ctx, slog.New(slog.NewTextHandler(&log, nil)))
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
			said := func(line string) {
				t.Helper()
				if got := log.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, line) {
					t.Errorf("alone %t: said %q, want %q", alone, got, line)
				}
				log.Reset()
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
			said("the oldest rows are dropped")
			k.note(time.Now())
			mu.Lock()
			failed = errors.New("no answer")
			mu.Unlock()
			want("a look failed", 2)
			said("may be larger")
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
	synctest.Test(t, func(t *testing.T) {
		if err := s.pause(t.Context(), standbyMost); err != nil || len(s.asked) > 0 {
			t.Errorf("work that has waited for as long asks whether the engine is open: %v", err)
		}
	})
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

// closed is a store that reports its engine as closed.
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
		x.Unread(t.Context(), true)
		if took := waits(time.Minute); took != time.Minute {
			t.Errorf("without: %s", took)
		}
		time.AfterFunc(time.Second, func() { x.Unread(t.Context(), false) })
		if took := waits(time.Minute); took != time.Second {
			t.Errorf("until there is one: %s", took)
		}
		x.settings.Budgets = make([]attribution.Budget, 1)
		x.Unread(t.Context(), true)
		if took := waits(time.Minute); took != 0 {
			t.Errorf("with a budget: %s", took)
		}
	})
}

// TestRollupsOfAQuietStore: the rollups are computed each minute, or as seldom as that takes a twentieth of the time; those of the embedded
// store each ten minutes once few of its hours have new rows.
func TestRollupsOfAQuietStore(t *testing.T) {
	const settle = 5 * time.Minute
	quiet := append(append([]time.Duration{rollFirst}, slices.Repeat([]time.Duration{time.Minute}, 8)...), rollSeldom, rollSeldom)
	for _, c := range []struct {
		name     string
		embedded bool
		hours    int // with new rows, the first twice
		err      error
		takes    time.Duration
		want     []time.Duration // from one time to the next
	}{
		{"few hours", true, fewHours, nil, 0, []time.Duration{rollFirst, rollSeldom, rollSeldom, rollSeldom}},
		{"many at first", true, fewHours + 1, nil, 0, quiet},
		{"failed at first", true, 0, errors.New("no answer"), 0, quiet},
		{"a server", false, 0, nil, 0, []time.Duration{rollFirst, time.Minute, time.Minute, time.Minute}},
		{"that is slow", false, 0, nil, 6 * time.Second, []time.Duration{rollFirst, 126 * time.Second, 126 * time.Second}},
		{"that is slow, and quiet", true, 0, nil, time.Minute, []time.Duration{rollFirst, 21 * time.Minute, 21 * time.Minute}},
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			var got []time.Duration
			last, passes := time.Now(), 0
			pass := func(context.Context, computed) (int, error) {
				if passes++; passes%len(everyComputed()) != 1 {
					return 0, nil
				}
				got, last = append(got, time.Since(last)), time.Now()
				if time.Sleep(c.takes); len(got) == len(c.want) {
					cancel()
				}
				if len(got) <= 2 {
					return c.hours, c.err
				}
				return 0, nil
			}
			var log bytes.Buffer
			keepRollups(ctx, &Conn{embedded: c.embedded}, pass, rollFirst, settle, slog.New(slog.NewTextHandler(&log, nil)))
			if !slices.Equal(got, c.want) {
				t.Errorf("%s: %v, want %v", c.name, got, c.want)
			}
			if said := strings.Count(log.String(), "is behind"); said != map[bool]int{true: 2}[c.err != nil] {
				t.Errorf("%s: said %s", c.name, &log)
			}
		})
	}
}

// TestDaysAreKept: days that are over are merged each ten minutes; a failure is logged and tried again.
func TestDaysAreKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		began := time.Now()
		var got []string
		merge := func(context.Context) (int, error) {
			if got = append(got, time.Since(began).String()); len(got) == 3 {
				cancel()
			}
			return 0, map[bool]error{true: errors.New("no answer")}[len(got) == 2]
		}
		var log bytes.Buffer
		keepDays(ctx, standby{}, merge, slog.New(slog.NewTextHandler(&log, nil)))
		if want := []string{"15s", "10m15s", "20m15s"}; !slices.Equal(got, want) || strings.Count(log.String(), "\n") != 1 {
			t.Errorf("%q, want %q; said %s", got, want, &log)
		}
	})
}

// TestStopWaits: nothing of a keeper runs once it is stopped.
func TestStopWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		k, ended := keeper{cancel: cancel}, false
		k.done.Go(func() { <-ctx.Done(); time.Sleep(time.Second); ended = true })
		if k.stop(); !ended {
			t.Error("it still runs")
		}
	})
}

// TestWhatAKeeperDoes: which work goes on behind an exporter, by its settings and its store, until it is stopped.
func TestWhatAKeeperDoes(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	for _, c := range []struct {
		name     string
		settings Settings
		embedded bool
		want     []string
	}{
		{"a server", Settings{CreateSchema: true}, false, []string{"keepAttribution", "keepRollups"}},
		{"lists that may wait", Settings{CreateSchema: true, ConversationsEvery: time.Second}, false, []string{"keepAttribution", "keepRollups", "underived"}},
		{"the embedded store", Settings{CreateSchema: true}, true, []string{"keepAttribution", "keepDays", "keepRollups"}},
		{"of another program", Settings{}, true, []string{"keepAttribution", "keepRollups"}},
		{"with a size", Settings{MaxSize: 1}, false, []string{"keepAttribution", "keepRollups", "sizeKeeper"}},
	} {
		c.settings.Conn, c.settings.Logger = ConnSettings{DSN: server.URL}, slog.New(slog.DiscardHandler)
		x, err := New(t.Context(), c.settings)
		if err != nil {
			t.Fatal(err)
		}
		x.conn.embedded = c.embedded
		running := func() (out []string) {
			stacks := make([]byte, 1<<20)
			stacks = stacks[:runtime.Stack(stacks, true)]
			for _, what := range []string{"keepAttribution", "keepDays", "keepRollups", "sizeKeeper", "underived"} {
				if regexp.MustCompile(`(?m)^\S*clickhouse\.(\(\*)?` + what + `[^\n]*\(`).Match(stacks) {
					out = append(out, what)
				}
			}
			return out
		}
		x.keeper.start(x, false)
		for end := time.Now().Add(5 * time.Second); !slices.Equal(running(), c.want) && time.Now().Before(end); {
			time.Sleep(time.Millisecond)
		}
		if got := running(); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
		x.keeper.stop()
		if got := running(); got != nil {
			t.Errorf("%s: %q go on", c.name, got)
		}
		if err := x.conn.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestAttributionIsKept: the rules are written once and applied at the start, unless nothing can be there, and when rows were stored, from
// their insert on; a pass that failed is made again for the same rows, seldom where it takes long.
func TestAttributionIsKept(t *testing.T) {
	for _, fresh := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			began := time.Now()
			var mu sync.Mutex // of the next three
			var got []string
			failing, takes := "", time.Duration(0)
			note := func(what string) error {
				mu.Lock()
				defer mu.Unlock()
				got = append(got, fmt.Sprint(what, " ", time.Since(began)))
				if what == failing {
					return errors.New("no answer")
				}
				return nil
			}
			conn, _ := scriptedConn(func(sql string) ([][]any, error) {
				switch {
				case strings.HasPrefix(sql, "SELECT max(generation)"):
					return [][]any{{1, "[]", began}}, nil
				case strings.HasPrefix(sql, "INSERT INTO `earshot`.`attribution_rules`"):
					return nil, note("rules")
				case strings.Contains(sql, "toUnixTimestamp64Milli(toDateTime64"):
					mu.Lock()
					rest := takes
					mu.Unlock()
					time.Sleep(rest)
					return [][]any{{time.Now().UnixMilli(), time.Now().UnixMilli()}}, note("pass")
				case strings.HasPrefix(sql, "SELECT toUnixTimestamp64Milli"):
					return [][]any{{time.Now().UnixMilli()}}, nil
				}
				return [][]any{{0, 0}}, nil
			})
			k := &keeper{stored: newArrivals()}
			var log bytes.Buffer
			p := attributor{c: conn, settle: 5 * time.Minute, sleep: pause, catchUp: func(context.Context) error { return nil }}
			go keepAttribution(ctx, p, []attribution.Rule{{Field: "user", Match: "(?P<team>.+)"}}, k, fresh, slog.New(slog.NewTextHandler(&log, nil)))
			want := func(when string, d time.Duration, warns int, want ...string) {
				t.Helper()
				time.Sleep(d)
				synctest.Wait()
				mu.Lock()
				defer mu.Unlock()
				if !slices.Equal(got, want) || strings.Count(log.String(), "\n") != warns {
					t.Errorf("fresh %t: %s: %q, want %q; said %q", fresh, when, got, want, &log)
				}
				got = nil
				log.Reset()
			}
			if fresh {
				want("at the start", time.Minute, 0, "rules 0s")
			} else {
				want("at the start", time.Minute, 0, "rules 0s", "pass 0s")
			}
			if _, some := k.stored.left(); some || !k.stored.known {
				t.Error("the rows of before are not attributed")
			}
			k.note(time.Now())
			want("rows", time.Minute, 0, "pass 1m0s")
			server := func(fails string, rests time.Duration) {
				mu.Lock()
				defer mu.Unlock()
				failing, takes = fails, rests
			}
			server("pass", 0)
			k.note(time.Now())
			want("a failure", 20*time.Second, 2, "pass 2m0s", "pass 2m15s")
			if since, some := k.stored.left(); !some || !since.Equal(began.Add(2*time.Minute)) {
				t.Errorf("the rows of a failed pass are forgotten: %s, %t", since, some)
			}
			server("", 0)
			want("it passes", 40*time.Second, 0, "pass 2m30s")
			if _, some := k.stored.left(); some {
				t.Error("they are not attributed")
			}
			server("", 3*time.Second)
			k.note(time.Now())
			want("a slow one", 10*time.Second, 0, "pass 3m3s")
			k.note(time.Now())
			want("rests", time.Minute, 0, "pass 4m6s")
			server("", 0)
			time.Sleep(2 * time.Minute) // 6m10s
			k.unread.Store(true)
			k.note(time.Now())
			want("without a reader", 2*time.Minute, 0)
			want("and longer", time.Minute, 0, "pass 9m3s")
			cancel()
			want("ended", time.Hour, 0)
		})
	}
}

// TestRulesAreWrittenAgain: rules that could not be written are at the next pass.
func TestRulesAreWrittenAgain(t *testing.T) {
	failing, written := true, 0
	conn, _ := scriptedConn(func(sql string) ([][]any, error) {
		if strings.HasPrefix(sql, "INSERT") {
			if written++; failing {
				return nil, errors.New("no answer")
			}
		}
		return [][]any{{7, "[]", time.Unix(0, 0)}}, nil
	})
	var k keeper
	for n, want := range []int{1, 2, 2} {
		if err := k.rule(t.Context(), attributor{c: conn}, someRules); (err != nil) != failing || written != want {
			t.Errorf("%d: %v, written %d times", n, err, written)
		}
		failing = false
	}
}
