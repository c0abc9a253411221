package clickhouse

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"
)

// TestBell: those that wait are woken the next time that it is rung, each time again, and not by one that was rung before.
func TestBell(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b bell
		b.ring() // without a waiter
		for n := range 2 {
			first, second := b.next(), b.next()
			time.AfterFunc(time.Second, b.ring)
			for _, r := range []ring{first, second} {
				began := time.Now()
				if rung, err := r.within(t.Context(), time.Minute); !rung || err != nil || time.Since(began) > time.Second {
					t.Errorf("%d: rung %t behind %s, %v", n, rung, time.Since(began), err)
				}
			}
			began := time.Now()
			if rung, err := b.next().within(t.Context(), time.Minute); rung || err != nil || time.Since(began) != time.Minute {
				t.Errorf("%d: rung again %t behind %s, %v", n, rung, time.Since(began), err)
			}
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if rung, err := b.next().within(ctx, time.Minute); rung || !errors.Is(err, context.Canceled) {
			t.Errorf("ended: rung %t, %v", rung, err)
		}
	})
}

// TestClosedEngine: the engine is closed where the store answers so, and nowhere else: a store that is not there, or that answers otherwise, is not waited for.
func TestClosedEngine(t *testing.T) {
	for answer, want := range map[string]bool{"HTTP/1.1 200 OK\r\n\r\nyes\n": true, "HTTP/1.1 200 OK\r\n\r\nno\n": false, "HTTP/1.1 200 OK\r\n\r\n": false, "yes\n": false, "": false} {
		socket := filepath.Join(t.TempDir(), "s")
		l, err := net.Listen("unix", socket)
		if err != nil {
			t.Fatal(err)
		}
		asked := make(chan string, 1)
		go func() {
			c, err := l.Accept()
			if err != nil {
				return
			}
			defer c.Close()
			request := make([]byte, 1024)
			n, _ := c.Read(request)
			var method, path string
			_, _ = fmt.Sscan(string(request[:n]), &method, &path)
			asked <- method + " " + path
			_, _ = io.WriteString(c, answer)
		}()
		if got := (standby{socket: socket}).now(t.Context()); got != want {
			t.Errorf("%q: closed %t", answer, got)
		}
		if got := <-asked; got != "GET /standby" {
			t.Errorf("asked %s", got)
		}
		l.Close()
		if (standby{socket: socket}).now(t.Context()) {
			t.Error("a store that is not there is closed")
		}
	}
	if (standby{}).now(t.Context()) {
		t.Error("a server is closed")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := (standby{}).open(ctx, time.Minute); !errors.Is(err, context.Canceled) {
		t.Errorf("ended: %v", err)
	}
}
