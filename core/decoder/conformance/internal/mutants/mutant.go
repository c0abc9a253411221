package mutants

import (
	"fmt"

	"github.com/earshot-dev/earshot/core/decoder"
	"github.com/earshot-dev/earshot/core/frame"
)

// Mutant is the reference decoder with one fault.
type Mutant struct {
	Name  string
	Rule  string // the rule that it breaks
	Fault string
	// mutate builds the faulty decoder. It is called for each decoder, with the state that
	// the decoders of one factory share.
	mutate func(*referenceDecoder, *shared) *mutantDecoder
}

// shared is the state that the decoders of one factory share.
type shared struct {
	state *referenceDecoder // D1
	done  chan struct{}     // ends the goroutines that outlive a decoder
}

// mutantDecoder is a reference decoder of which methods are replaced.
type mutantDecoder struct {
	*referenceDecoder
	decode   func(*frame.Frame, *decoder.Output) error
	flush    func(*decoder.Output) error
	snapshot func() ([]byte, error)
}

// Decode implements decoder.Decoder.
func (a *mutantDecoder) Decode(f *frame.Frame, out *decoder.Output) error {
	if a.decode != nil {
		return a.decode(f, out)
	}
	return a.referenceDecoder.Decode(f, out)
}

// Flush implements decoder.Decoder.
func (a *mutantDecoder) Flush(out *decoder.Output) error {
	if a.flush != nil {
		return a.flush(out)
	}
	return a.referenceDecoder.Flush(out)
}

// Snapshot implements decoder.Snapshotter.
func (a *mutantDecoder) Snapshot() ([]byte, error) {
	if a.snapshot != nil {
		return a.snapshot()
	}
	return a.referenceDecoder.Snapshot()
}

// Factory makes decoders of one mutant.
type Factory struct {
	Reference
	mutant Mutant
	shared *shared
}

// New implements decoder.Factory.
func (f *Factory) New(s decoder.Stream) (decoder.Decoder, error) {
	p, err := newReference(s)
	if err != nil {
		return nil, err
	}
	return f.mutant.mutate(p, f.shared), nil
}

// Close ends the goroutines that the factory's decoders left behind.
func (f *Factory) Close() { close(f.shared.done) }

// Factory returns a factory of the mutant. Close must be called.
func (m Mutant) Factory() *Factory {
	return &Factory{mutant: m, shared: &shared{done: make(chan struct{})}}
}

// Named returns the mutant with that name.
func Named(name string) (Mutant, error) {
	for _, a := range Mutants() {
		if a.Name == name {
			return a, nil
		}
	}
	return Mutant{}, fmt.Errorf("mutants: there is no mutant %q", name)
}
