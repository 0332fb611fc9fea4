"""The process that runs one solution. Nothing it says is believed; it is small enough to be read in one sitting."""
