package main

import (
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestPagesAreTheOwners: another user of the machine, who reaches its loopback addresses, gets no page, unless the flag says so.
func TestPagesAreTheOwners(t *testing.T) {
	for _, all := range []bool{false, true} {
		l, err := listenLoopback(t.Context(), "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		served := make(chan error, 1)
		go func() {
			served <- serve(ctx, l, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "a conversation") }), all)
		}()
		get := func(user int) (int, string) {
			t.Helper()
			c := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
				runtime.LockOSThread() // a socket is of the user of the thread that makes it
				defer runtime.UnlockOSThread()
				if user != os.Geteuid() {
					if err := unix.Setfsuid(user); err != nil {
						return nil, err
					}
					defer func() { _ = unix.Setfsuid(os.Geteuid()) }()
				}
				return new(net.Dialer).DialContext(ctx, network, address)
			}}}
			resp, err := c.Get("http://" + l.Addr().String() + "/")
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			b, _ := io.ReadAll(resp.Body)
			return resp.StatusCode, string(b)
		}
		if status, text := get(os.Geteuid()); status != http.StatusOK || text != "a conversation" {
			t.Errorf("the owner gets %d: %s", status, text)
		}
		if os.Geteuid() == 0 {
			const nobody = 65534
			switch status, text := get(nobody); {
			case all && status != http.StatusOK:
				t.Errorf("with --any-user another user gets %d: %s", status, text)
			case !all && (status != http.StatusForbidden || strings.Contains(text, "conversation")):
				t.Errorf("another user gets %d: %s", status, text)
			}
		}
		stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
	}
	if os.Geteuid() != 0 {
		t.Skip("only root can be another user")
	}
}
