package file

import (
	"container/list"
	"os"
	"time"

	"github.com/earshot-dev/earshot/core/internal/source"
)

type kind uint8

const (
	transcript kind = iota // read by lines, and it may grow
	archive                // what a .gz holds, read by lines
	companion              // one frame
)

// file is one file that is tailed: an inode, whatever its name. There is one for
// every file below the patterns, so it is kept small.
//
// A ghost is a file whose name is gone, or whose content made room for another.
// It holds the stream until that is found elsewhere or forgotten.
type file struct {
	// These are guarded by Source.mu.
	path      string // as it is known now
	id        inode
	stamp     stamp  // as it was seen last
	round     uint32 // of the scan that saw it last
	kind      kind
	sched     sched
	fresh     bool // it was there at the start, and was not read to its end yet
	early     bool // it was there when the source ran for the first time
	lost      bool // its name leads elsewhere, and it has to be seen what became of it
	outside   bool // no pattern covers its name
	guest     bool // and it is not wanted unless it goes on with a stream
	failed    bool // it could not be read, so look again with the next scan
	partial   bool // its last line is pending
	ghost     bool
	expired   bool      // a ghost that is to be forgotten
	unsettled string    // the family that waits for it
	known     []*stream // that were read from this inode in an earlier run
	stream    *stream
	part      *part         // of a copy that has no stream
	haunt     *haunt        // of a ghost
	place     *list.Element // in Source.idle

	// fd belongs to the worker that has the file in its hands. While none has, it is
	// closed when there are too many.
	fd *os.File
}

// haunt is what is known of a ghost.
type haunt struct {
	since time.Time
	waits time.Time // the time after which it is forgotten counts from here
	left  int64     // bytes that are lost with it, unless a copy turns up

	flushed bool // what the decoder of its stream held is emitted
}

// stream is one stream of frames, and the content that they are read from.
type stream struct {
	// These are guarded by Source.mu.
	file   *file // that holds the content
	rewind int64 // position to go on from; -1: none

	marks marks // written under mu by the worker that has the file in its hands

	// These belong to that worker.
	key    string
	anchor int64
	origin string        // as the sink knows it
	out    source.Stream // nil while it is not open
	place  place
	done   stamp // of a file that holds nothing more; zero: there may be more
	safe   int64 // position up to which an earlier run got it through
	size   int64 // of the file when it was read last
	// followed says that its end was reached, and heard is the last position at which
	// it was: what begins behind that was written while the file was followed.
	followed bool
	heard    int64
}

// id returns how the sink is to know the stream, read up to m from f.
func (st *stream) id(f *file, path string, outside bool, m marks) source.ID {
	s := state{
		V: stateV, Kind: f.kind, Dev: f.id.dev, Ino: f.id.ino, Outside: outside,
		Base: st.place.base, Off: m.off, Head: m.head, HeadLen: m.headLen, Tail: m.tail,
		DoneSize: st.done.size, DoneMtime: st.done.mtime,
	}
	return source.ID{Key: st.key, Origin: path, Anchor: st.anchor, State: s.encode()}
}
