package codex

import "slices"

// What is said is told by up to three families of records, in any order.
const (
	byItem  = 1 << iota // response_item
	byEvent             // event_msg
	byDone              // event_msg of an item that is completed
)

// maxTwins is how many texts of a turn are remembered.
const maxTwins = 64

// twin is a text that was told.
type twin struct {
	Hash uint64
	By   uint8 // the families that told it
}

// told reports whether another family has told the text already, and remembers
// that this one has. The same text told twice by one family was said twice.
func (d *thread) told(text uint64, by uint8) bool {
	for i := range d.Twins {
		if t := &d.Twins[i]; t.Hash == text && t.By&by == 0 {
			t.By |= by
			return true
		}
	}
	if len(d.Twins) == maxTwins {
		d.Twins = d.Twins[:copy(d.Twins, d.Twins[1:])]
	}
	d.Twins = append(d.Twins, twin{text, by})
	return false
}

// heardBefore reports whether a text is among the last that were told.
func (d *thread) heardBefore(text uint64) bool {
	return slices.ContainsFunc(d.Twins, func(t twin) bool { return t.Hash == text })
}
