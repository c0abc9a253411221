package file

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"golang.org/x/sys/unix"
)

const inotifyMask = unix.IN_CREATE | unix.IN_MODIFY | unix.IN_ATTRIB | unix.IN_MOVED_FROM | unix.IN_MOVED_TO |
	unix.IN_DELETE | unix.IN_DELETE_SELF | unix.IN_MOVE_SELF | unix.IN_ONLYDIR

// inotify watches directories. It is used directly because a directory can be
// reached under several names, and its name can change: the kernel returns the same
// watch descriptor for all of them, and an event has to be reported under each.
// Events arrive in the kernel's batches; it merges repeated ones that are not read yet.
type inotify struct {
	fd   *os.File
	raw  int // its descriptor; File.Fd would make it blocking
	out  chan []event
	stop chan struct{}
	done chan struct{}

	mu     sync.Mutex
	closed bool
	dirs   map[int32]string
	more   map[int32][]string // further names of a few
}

func newWatcher() (watcher, error) {
	raw, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return nil, fmt.Errorf("inotify: %w", err)
	}
	w := &inotify{
		fd: os.NewFile(uintptr(raw), "inotify"), raw: raw,
		out: make(chan []event), stop: make(chan struct{}), done: make(chan struct{}),
		dirs: make(map[int32]string), more: make(map[int32][]string),
	}
	go w.read()
	return w, nil
}

func (w *inotify) Add(dir string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return fs.ErrClosed
	}
	n, err := unix.InotifyAddWatch(w.raw, dir, inotifyMask)
	if errors.Is(err, unix.ENOSPC) {
		return fmt.Errorf("inotify: watch %s: the limit is /proc/sys/fs/inotify/max_user_watches: %w", dir, err)
	}
	if err != nil {
		return fmt.Errorf("inotify: watch %s: %w", dir, err)
	}
	wd := int32(n)
	switch name, ok := w.dirs[wd]; {
	case !ok:
		w.dirs[wd] = dir
	case name != dir && !slices.Contains(w.more[wd], dir):
		w.more[wd] = append(w.more[wd], dir)
	}
	return nil
}

func (w *inotify) Events() <-chan []event { return w.out }

func (w *inotify) Close() error {
	w.mu.Lock()
	w.closed = true
	err := w.fd.Close()
	w.mu.Unlock()
	close(w.stop)
	<-w.done
	return err
}

func (w *inotify) read() {
	defer close(w.done)
	buf := make([]byte, 64<<10)
	for {
		n, err := w.fd.Read(buf)
		if errors.Is(err, fs.ErrClosed) {
			return
		}
		events := []event{{kind: overflowed}}
		if err == nil {
			events = w.parse(buf[:n])
		}
		select {
		case w.out <- events:
		case <-w.stop:
			return
		}
		if err != nil { // the poll goes on
			return
		}
	}
}

func (w *inotify) parse(b []byte) []event {
	w.mu.Lock()
	defer w.mu.Unlock()
	var events []event
	var last []byte
	for len(b) >= unix.SizeofInotifyEvent {
		n := unix.SizeofInotifyEvent + int(binary.NativeEndian.Uint32(b[12:]))
		if n > len(b) {
			break
		}
		if !bytes.Equal(b[:n], last) {
			wd := int32(binary.NativeEndian.Uint32(b))
			events = w.event(events, wd, binary.NativeEndian.Uint32(b[4:]), b[unix.SizeofInotifyEvent:n])
		}
		last, b = b[:n], b[n:]
	}
	return events
}

// event appends the events for one record of the kernel. w.mu is held.
func (w *inotify) event(events []event, wd int32, mask uint32, name []byte) []event {
	if mask&unix.IN_Q_OVERFLOW != 0 {
		return append(events, event{kind: overflowed})
	}
	dir, ok := w.dirs[wd]
	if !ok {
		return events
	}
	more := w.more[wd]
	var kind eventKind
	switch {
	case mask&unix.IN_IGNORED != 0:
		w.forget(wd)
		return events
	case mask&unix.IN_MOVE_SELF != 0:
		unix.InotifyRmWatch(w.raw, uint32(wd)) // the walk that follows adds it again, if it still matters
		w.forget(wd)
		kind = dirMoved
	case mask&(unix.IN_DELETE_SELF|unix.IN_UNMOUNT) != 0:
		kind = dirMoved
	case len(name) == 0:
		return events
	case mask&unix.IN_MODIFY != 0:
		kind = wrote
	case mask&unix.IN_DELETE != 0:
		kind = deleted
	case mask&unix.IN_MOVED_FROM != 0:
		kind = movedAway
	default:
		kind = appeared
	}
	base := string(bytes.TrimRight(name, "\x00"))
	events = append(events, event{kind, filepath.Join(dir, base)})
	for _, dir := range more {
		events = append(events, event{kind, filepath.Join(dir, base)})
	}
	return events
}

func (w *inotify) forget(wd int32) {
	delete(w.dirs, wd)
	delete(w.more, wd)
}
