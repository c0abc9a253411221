// Package replay records the frames of listeners in files and plays files back: as frames at
// their own pace, or as an agent's server.
//
// A file has the frames of one stream, in the form that package fixture calls
// frames: `earshot decode` reads it too. A listener's own state
// (source.Recording.Mark) is not written.
package replay
