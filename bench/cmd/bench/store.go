package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// engine is an earshot-store of its own, with empty tables.
type engine struct {
	addr  string
	cmd   *exec.Cmd
	stdin io.Closer
	watch *watch
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
			var r struct{ Addr string }
			if json.Unmarshal(b, &r) == nil && r.Addr != "" {
				e.addr = r.Addr
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

// query returns the fields of the one row of an answer.
func (e *engine) query(ctx context.Context, sql string) ([]string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+e.addr+"/?user=default&default_format=TabSeparated", strings.NewReader(sql))
	if err != nil {
		return nil, err
	}
	resp, err := http.DefaultClient.Do(req)
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
