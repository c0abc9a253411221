package clickhouse

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"
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
			s := sizeKeeper{alone: alone, grown: &k.grown, drop: func(context.Context) (int64, string, error) {
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
