package file

import (
	"container/list"
	"context"
	"os"
	"sync"
	"time"

	"github.com/earshot-dev/earshot/core/internal/source"
)

// Source tails files. One goroutine (follow) finds them and keeps track of their
// names, a few workers read them; all that passes between is guarded by mu, which
// is never held while a file is read or the sink is called.
type Source struct {
	Settings
	patterns *patterns
	lines    *lines
	sink     source.Sink

	// What the tests replace.
	watch   func() (watcher, error)
	open    func(string) (*os.File, error)
	readDir func(string) ([]os.DirEntry, error)
	workers int           // how many files are read at the same time; archives have one more
	whole   time.Duration // how long a file must have been left alone to be called whole

	mu        sync.Mutex
	plain     queue // files and companions
	packed    queue // archives
	delayed   int   // files that a timer will push
	idle      list.List
	byID      map[inode]*file
	byPath    map[string]*file   // by every name it was seen under
	rotated   map[string][]*file // by family, those with another name than it
	keys      map[string]struct{}
	ghosts    map[string][]*file // by family
	pending   map[string]int     // by family: files of which it is not known yet whether they keep their stream
	trying    map[string]bool    // families of which one is being identified; true: in vain
	troubles  map[string]string  // reasons by path
	asks      []ask
	held      bool // the workers take nothing up
	scanned   bool // once
	finishing bool

	wake chan struct{} // there are asks

	// These belong to follow.
	watching watcher
	dirs     map[string][]spot // the directories in which something can match
	round    uint32
	known    map[uint64][]*remembered // streams of earlier runs by inode number, until they are found
	first    bool                     // nothing has been read before
	full     bool                     // no more directories can be watched
}

// ask is what a worker wants follow to do.
type ask struct {
	file   *file // its path leads elsewhere: look what is there, and for it
	copies *file // look for copies of the stream of this ghost
}

// ask asks it. s.mu is held.
func (s *Source) ask(a ask) {
	s.asks = append(s.asks, a)
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// Run tails until ctx ends. It may be called once.
func (s *Source) Run(ctx context.Context, sink source.Sink) error {
	s.sink = sink
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s.startWatching(ctx)
	defer s.stopWatching()
	known := sink.Known()
	s.first = len(known) == 0
	s.remember(known)

	var wg sync.WaitGroup
	for range s.workers {
		wg.Go(func() { s.work(ctx, &s.plain) })
	}
	wg.Go(func() { s.work(ctx, &s.packed) })
	s.follow(ctx)
	cancel()

	s.mu.Lock()
	s.plain.cond.Broadcast()
	s.packed.cond.Broadcast()
	s.mu.Unlock()
	wg.Wait()
	s.mu.Lock()
	s.closeIdle(0)
	s.mu.Unlock()
	return nil
}

// Drained reports whether every file is at its end and delivered. A last line
// without a newline does not count; see Finish.
func (s *Source) Drained() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.scanned && !s.held && len(s.asks) == 0 && s.delayed == 0 &&
		s.plain.len()+s.plain.active+s.packed.len()+s.packed.active == 0
}

// Finish says that nothing more is going to be written: what was read of last
// lines without a newline is delivered as it stands. Drained is false until that
// is done.
func (s *Source) Finish() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.finishing = true
	for _, f := range s.byID {
		if f.partial {
			s.push(f)
		}
	}
	for _, ghosts := range s.ghosts {
		for _, f := range ghosts {
			if f.partial {
				s.push(f)
			}
		}
	}
}

// rewind is what the sink calls to have frames again.
func (s *Source) rewind(st *stream, pos int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	st.rewind = pos
	if st.file != nil {
		s.push(st.file)
	}
}
