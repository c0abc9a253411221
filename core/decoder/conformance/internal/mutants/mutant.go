package mutants

import (
	"fmt"

	"github.com/earshot-dev/earshot/core/decoder"
	"github.com/earshot-dev/earshot/core/frame"
)

// Mutant is a parrot with one bad habit.
type Mutant struct {
	Name  string
	Rule  string // the rule that it breaks
	Habit string
	// tame gives the parrot its habit. It is called for each decoder, with what the
	// decoders of one factory share.
	tame func(*parrot, *herd) *animal
}

// herd is what the decoders of one factory share.
type herd struct {
	state *parrot       // D1
	done  chan struct{} // ends what outlives a decoder
}

// animal is a parrot of which parts were replaced.
type animal struct {
	*parrot
	decode   func(*frame.Frame, *decoder.Output) error
	flush    func(*decoder.Output) error
	snapshot func() ([]byte, error)
}

// Decode implements decoder.Decoder.
func (a *animal) Decode(f *frame.Frame, out *decoder.Output) error {
	if a.decode != nil {
		return a.decode(f, out)
	}
	return a.parrot.Decode(f, out)
}

// Flush implements decoder.Decoder.
func (a *animal) Flush(out *decoder.Output) error {
	if a.flush != nil {
		return a.flush(out)
	}
	return a.parrot.Flush(out)
}

// Snapshot implements decoder.Snapshotter.
func (a *animal) Snapshot() ([]byte, error) {
	if a.snapshot != nil {
		return a.snapshot()
	}
	return a.parrot.Snapshot()
}

// Factory makes decoders of one animal.
type Factory struct {
	Reference
	animal Mutant
	herd   *herd
}

// New implements decoder.Factory.
func (f *Factory) New(s decoder.Stream) (decoder.Decoder, error) {
	p, err := newParrot(s)
	if err != nil {
		return nil, err
	}
	return f.animal.tame(p, f.herd), nil
}

// Close ends what the factory's decoders left behind.
func (f *Factory) Close() { close(f.herd.done) }

// Factory returns a factory of the animal. Close must be called.
func (a Mutant) Factory() *Factory {
	return &Factory{animal: a, herd: &herd{done: make(chan struct{})}}
}

// Named returns the animal with that name.
func Named(name string) (Mutant, error) {
	for _, a := range Mutants() {
		if a.Name == name {
			return a, nil
		}
	}
	return Mutant{}, fmt.Errorf("zoo: there is no animal %q", name)
}
