package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

const lockFile = "earshot-store.lock"

// lockPath keeps a second process off the data folder, and waits that long for the process that has
// it. The lock goes with the process, however it ends; the file stays and names its last owner.
func lockPath(ctx context.Context, path string, wait time.Duration) (lock *os.File, err error) {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil, fmt.Errorf("make data folder: %w", err)
	}
	f, err := os.OpenFile(filepath.Join(path, lockFile), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open lock: %w", err)
	}
	for end := time.Now().Add(wait); ; time.Sleep(5 * time.Millisecond) {
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if !errors.Is(err, syscall.EWOULDBLOCK) || time.Now().After(end) || ctx.Err() != nil {
			break
		}
	}
	if err != nil {
		defer f.Close()
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, fmt.Errorf("lock data folder: %w", err)
		}
		owner, _ := os.ReadFile(f.Name())
		return nil, fmt.Errorf("%s is in use by another earshot-store (pid %s)", path, strings.TrimSpace(string(owner)))
	}
	if err := errors.Join(f.Truncate(0), writeAt(f, fmt.Sprintln(os.Getpid()))); err != nil {
		f.Close()
		return nil, fmt.Errorf("write lock: %w", err)
	}
	return f, nil
}

func writeAt(f *os.File, text string) error {
	_, err := f.WriteAt([]byte(text), 0)
	return err
}

// ready is the content of the ready file.
type ready struct {
	Socket  string `json:"socket"`  // path of the Unix socket
	PID     int    `json:"pid"`     // of this process
	Version string `json:"version"` // of the engine
}

// writeReady writes the file whole or not at all.
func writeReady(path, socket, version string) error {
	b, err := json.Marshal(ready{socket, os.Getpid(), version})
	if err != nil {
		return fmt.Errorf("ready file: %w", err)
	}
	tmp := fmt.Sprintf("%s.%d.tmp", path, os.Getpid())
	if err := os.WriteFile(tmp, append(b, '\n'), 0o600); err != nil {
		return fmt.Errorf("ready file: %w", err)
	}
	if err := os.Rename(tmp, path); err != nil {
		os.Remove(tmp)
		return fmt.Errorf("ready file: %w", err)
	}
	return nil
}
