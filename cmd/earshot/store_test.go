package main

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
)

// TestStoreForOthers serves a running store to a program that knows TCP alone, as a reader.
func TestStoreForOthers(t *testing.T) {
	h := newHome(t)
	ctx, stop := context.WithCancel(t.Context())
	r, w := io.Pipe()
	done := make(chan error, 1)
	go func() {
		c := newRoot()
		c.SetArgs([]string{"store", "--listen", "127.0.0.1:0", "-c", h.config})
		c.SetOut(w)
		err := c.ExecuteContext(ctx)
		w.CloseWithError(err)
		done <- err
	}()
	defer func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}()
	line, err := bufio.NewReader(r).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	address := strings.TrimSpace(line)
	u, err := url.Parse(address)
	if err != nil || u.User.Username() != "reader" {
		t.Fatalf("%q, %v", address, err)
	}
	ask := func(to, sql string) (int, string) {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, to, strings.NewReader(sql))
		if err != nil {
			t.Fatal(err)
		}
		resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		b, _ := io.ReadAll(resp.Body)
		return resp.StatusCode, strings.TrimSpace(string(b))
	}
	if status, body := ask(address, "SELECT count() FROM earshot.messages"); status != 200 || body != "0" {
		t.Errorf("%d %s", status, body)
	}
	if status, body := ask(address, "DROP TABLE earshot.messages"); status == 200 || !strings.Contains(body, "may only read") {
		t.Errorf("a reader writes: %d %s", status, body)
	}
	if status, _ := ask("http://"+u.Host, "SELECT 1"); status != 401 {
		t.Errorf("without a token: %d", status)
	}
}
