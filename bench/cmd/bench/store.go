package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// engine is an earshot-store of its own, with empty tables.
type engine struct {
	socket string
	// forwarder listens for the peer, whose exporter knows TCP alone, and copies to the socket.
	forwarder net.Listener
	client    http.Client
	cmd       *exec.Cmd
	stdin     io.Closer
	watch     *watch
}

// startEngine starts one on a new directory below dir.
func startEngine(ctx context.Context, bin, dir string) (*engine, error) {
	ready := filepath.Join(dir, "ready")
	cmd := exec.Command(filepath.Join(bin, "earshot-store"), "--path", filepath.Join(dir, "store"), "--ready-file", ready, "--watch-stdin")
	var log bytes.Buffer
	cmd.Stderr = &log
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	e := &engine{cmd: cmd, stdin: stdin, watch: watchProcess(cmd.Process.Pid)}
	for end := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		if b, err := os.ReadFile(ready); err == nil {
			var r struct{ Socket string }
			if json.Unmarshal(b, &r) == nil && r.Socket != "" {
				e.socket = r.Socket
				if e.forwarder, err = forward(r.Socket); err != nil {
					e.close()
					return nil, err
				}
				e.client.Transport = &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
					return (&net.Dialer{}).DialContext(ctx, "unix", r.Socket)
				}}
				return e, nil
			}
		}
		if time.Now().After(end) || ctx.Err() != nil {
			e.close()
			return nil, fmt.Errorf("store does not answer: %s", log.Bytes())
		}
	}
}

// close stops the store and returns its usage.
func (e *engine) close() usage {
	u := e.watch.end()
	if e.forwarder != nil {
		_ = e.forwarder.Close()
	}
	_ = e.stdin.Close()
	done := make(chan struct{})
	go func() { _ = e.cmd.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(30 * time.Second):
		_ = e.cmd.Process.Kill()
		<-done
	}
	return u
}

// forward copies TCP connections to a Unix socket until the listener is closed.
func forward(socket string) (net.Listener, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				u, err := net.Dial("unix", socket)
				if err != nil {
					return
				}
				defer u.Close()
				go func() {
					_, _ = io.Copy(u, c)
					_ = u.(*net.UnixConn).CloseWrite()
				}()
				_, _ = io.Copy(c, u)
			}()
		}
	}()
	return l, nil
}

// dsn is the address of the database, for a writer.
func (e *engine) dsn() string { return "http+unix://default@" + url.PathEscape(e.socket) + "/earshot" }

// query returns the fields of the one row of an answer.
func (e *engine) query(ctx context.Context, sql string) ([]string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://store/?user=default&default_format=TabSeparated", strings.NewReader(sql))
	if err != nil {
		return nil, err
	}
	resp, err := e.client.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = errors.New(string(b))
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", sql, err)
	}
	return strings.Split(strings.TrimRight(string(b), "\n"), "\t"), nil
}
