package frame

// Append copies data to the end of the batch's buffer and adds f as the frame
// over the copy. It is for sources that cut frames out of chunks; a source that
// reads straight into the buffer has nothing to copy. A buffer that must grow
// takes the frames that lie in it along.
func (b *Batch) Append(f Frame, data []byte) {
	old := b.Data
	b.Data = append(b.Data, data...)
	if cap(b.Data) != cap(old) {
		for i := range b.Frames {
			g := &b.Frames[i]
			if off, ok := Offset(old, g.Data); ok {
				g.Data = b.Data[off : off+len(g.Data)]
			}
		}
	}
	f.Data = b.Data[len(old):]
	b.Frames = append(b.Frames, f)
}

// Reset empties the batch and keeps its memory. Nothing may alias the buffer any
// more.
func (b *Batch) Reset() {
	clear(b.Frames)
	b.Data, b.Frames = b.Data[:0], b.Frames[:0]
}
