package standby

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestTake: connections without a request are taken with the requests that follow on them, and one on which a request has begun,
// however slowly it arrives, is answered first.
func TestTake(t *testing.T) {
	l, err := net.Listen("unix", filepath.Join(t.TempDir(), "s"))
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, r.URL.Path) })}
	var conns Conns
	conns.Follow(server)
	served := make(chan error, 1)
	go func() { served <- server.Serve(Resumed(conns.Listener(l), nil)) }()

	dial := func() net.Conn {
		c, err := net.Dial("unix", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		return c
	}
	get := func(c net.Conn, path string) {
		t.Helper()
		fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: x\r\n\r\n", path)
		resp, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil || resp.StatusCode != http.StatusOK {
			t.Fatalf("%s: %v, %v", path, resp, err)
		}
		resp.Body.Close()
	}
	silent, used, slow := dial(), dial(), dial()
	get(used, "/first")
	fmt.Fprint(slow, "GET /slow HTTP/1.1\r\n")
	get(dial(), "/later") // the three are accepted
	for begun := 0; begun != 1; time.Sleep(time.Millisecond) {
		begun = 0
		conns.mu.Lock()
		for c := range conns.open {
			c.mu.Lock()
			if c.begun {
				begun++
			}
			c.mu.Unlock()
		}
		conns.mu.Unlock()
	}

	if err := l.(*net.UnixListener).SetDeadline(time.Now()); err != nil {
		t.Fatal(err)
	}
	<-served
	taken := make(chan []int, 1)
	go func() {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		taken <- conns.Take(ctx)
	}()
	select {
	case <-taken:
		t.Fatal("a connection was taken while its request arrived")
	case <-time.After(50 * time.Millisecond):
	}
	fmt.Fprint(silent, "later")
	fmt.Fprint(slow, "Host: x\r\n\r\n")
	resp, err := http.ReadResponse(bufio.NewReader(slow), nil)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("slow: %v, %v", resp, err)
	}
	resp.Body.Close()

	list := <-taken
	if len(list) != 4 {
		t.Errorf("%d connections are taken, want 4", len(list))
	}
	found := false
	for _, fd := range list {
		f := os.NewFile(uintptr(fd), "connection")
		c, err := net.FileConn(f)
		f.Close()
		if err != nil {
			t.Fatal(err)
		}
		_ = c.SetReadDeadline(time.Now().Add(20 * time.Millisecond))
		b := make([]byte, 10)
		if n, _ := c.Read(b); string(b[:n]) == "later" {
			found = true
		}
		c.Close()
	}
	if !found {
		t.Error("what was sent on a connection that is taken is not there")
	}
	if err := server.Close(); err != nil {
		t.Error(err)
	}
	l.Close()
}
