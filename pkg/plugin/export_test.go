package plugin

// NewCommandWithMasker is NewCommand with the masker of its runs.
var NewCommandWithMasker = newCommand
