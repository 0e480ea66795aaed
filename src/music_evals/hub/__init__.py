"""From records to model cards and the Hub.

`publishing` makes a repository of every repository folder, `pushing` writes scores into the card of a model on the Hub;
`cards` fills a card in a folder, without the Hub.
"""
