package source

import (
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestServe: a request in progress when the context ends has the grace, on each listener, and a server
// that fails ends the others.
func TestServe(t *testing.T) {
	listen := func() net.Listener {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	began, end := make(chan struct{}), make(chan struct{})
	handler := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		began <- struct{}{}
		<-end
		_, _ = io.WriteString(w, "done")
	})
	a, b := listen(), listen()
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() {
		served <- Serve(ctx, time.Minute, Served{&http.Server{Handler: handler}, a}, Served{&http.Server{Handler: handler}, b})
	}()
	answers := make(chan string, 2)
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	for _, l := range []net.Listener{a, b} {
		go func() {
			resp, err := client.Get("http://" + l.Addr().String())
			if err != nil {
				answers <- err.Error()
				return
			}
			text, _ := io.ReadAll(resp.Body)
			_ = resp.Body.Close()
			answers <- string(text)
		}()
		<-began
	}
	cancel()
	close(end)
	for range 2 {
		if got := <-answers; got != "done" {
			t.Error(got)
		}
	}
	if err := <-served; err != nil {
		t.Error(err)
	}

	broken, other := listen(), listen()
	_ = broken.Close()
	if err := Serve(t.Context(), time.Minute, Served{&http.Server{}, other}, Served{&http.Server{}, broken}); err == nil || !strings.Contains(err.Error(), "closed") {
		t.Errorf("a listener that is closed: %v", err)
	}
}
