"""Folk tunes of Ireland and Britain as 16-measure contexts for score inpainting."""
