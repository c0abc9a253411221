package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/earshot-dev/earshot/cmd/earshot-store/internal/standby"
)

// held is what the process keeps from its start to its end, with an engine and without: the lock of the data
// folder and the socket.
type held struct {
	lock      *os.File
	listener  *net.UnixListener
	path      string // of the data folder
	again     bool   // this program has become itself
	inherited standby.State
	socket    int // descriptor of keepSocket
}

// hold takes over the lock and the socket of the program before, or makes them.
func hold(ctx context.Context, opt options) (*held, error) {
	h := &held{path: opt.path}
	var err error
	if h.inherited, h.again, err = standby.Inherited(); err != nil {
		return nil, err
	}
	if h.again {
		h.lock = os.NewFile(uintptr(h.inherited.Lock), filepath.Join(opt.path, lockFile))
		h.listener, err = h.inherited.Listener()
		return h, err
	}
	if err := check(opt); err != nil {
		return nil, err
	}
	// The lock is taken before any effect on another store of the folder.
	if h.lock, err = lockPath(ctx, opt.path, opt.wait); err != nil {
		return nil, err
	}
	if opt.readyFile != "" { // of a store that was killed
		if err := os.Remove(opt.readyFile); err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, fmt.Errorf("remove old ready file: %w", err)
		}
	}
	h.listener, err = listen(opt.socket)
	return h, err
}

// release ends the lock after the socket. The process ends then.
func (h *held) release() {
	h.listener.Close()
	h.lock.Close()
}

// keepSocket keeps the socket and its name when its listener is closed. Who connects then waits.
func (h *held) keepSocket() error {
	fd, err := standby.Descriptor(h.listener)
	if err == nil {
		h.socket, err = unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 3)
	}
	if err != nil {
		return fmt.Errorf("keep the socket: %w", err)
	}
	h.listener.SetUnlinkOnClose(false)
	return nil
}

// become leaves lock and socket to this program, which goes on with the state. It returns only with an error.
func (h *held) become(s *standby.State) error {
	if h.socket == 0 {
		if err := h.keepSocket(); err != nil {
			return err
		}
	}
	var err error
	if s.Lock, err = standby.Descriptor(h.lock); err != nil {
		return err
	}
	s.Socket = h.socket
	err = s.Exec(fenced + "=1")
	_ = os.Remove(h.listener.Addr().String()) // it has no listener any more
	return err
}

// lost reports whether the data folder was removed or replaced: its lock is another file.
func (h *held) lost() bool {
	at, err := os.Stat(filepath.Join(h.path, lockFile))
	if err != nil {
		return true
	}
	own, err := h.lock.Stat()
	return err != nil || !os.SameFile(at, own)
}
