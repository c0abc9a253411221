//go:build race

package decodertest

const raceDetector = true
