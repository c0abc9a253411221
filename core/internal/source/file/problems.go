package file

import (
	"errors"
	"io/fs"
	"sync"

	"github.com/earshot-dev/earshot/core/internal/source"
)

// The reasons of Sink.Trouble.
const (
	ReasonDirectory  = "is_directory"
	ReasonNotRegular = "not_regular"
	ReasonUnreadable = "unreadable" // read as soon as it can be
	ReasonRead       = "read_error"
	ReasonLink       = "link_leaves_tree" // a symbolic link out of the watched tree
	ReasonOwner      = "foreign_owner"    // the file is of a user whose files are not read
	ReasonArchive    = "corrupt_archive"  // read up to the corrupt place
	ReasonUnread     = "gone_unread"      // deleted or truncated before all of it was read
	ReasonReplay     = "gone_replay"      // to be delivered again, but gone
	ReasonRefused    = "refused"          // the pipeline returned an error
)

func reasonOf(err error) string {
	var refused refusal
	if errors.As(err, &refused) {
		return refused.reason
	}
	if errors.Is(err, fs.ErrPermission) {
		return ReasonUnreadable
	}
	return ReasonRead
}

// problems reports each problem of a path to the sink once, until it is cleared.
type problems struct {
	sink source.Sink

	mu     sync.Mutex
	byPath map[string]string // reasons
}

func newProblems(sink source.Sink) *problems {
	return &problems{sink: sink, byPath: make(map[string]string)}
}

func (p *problems) report(path, reason, detail string) {
	p.mu.Lock()
	known := p.byPath[path] == reason
	p.byPath[path] = reason
	p.mu.Unlock()
	if !known {
		p.sink.Trouble(path, reason, detail)
	}
}

func (p *problems) clear(path string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.byPath, path)
}
